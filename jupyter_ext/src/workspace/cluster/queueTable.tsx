/** A group of the queue as a table: priorities are edited in place, rows are moved by buttons or by dragging. */

import { useRef, useState } from 'preact/hooks';

import { formatCount, formatLeft, formatPercent } from '../../shared/format';
import type { Action } from '../../shared/model';
import { actOn } from '../../shared/requests';
import { TEXTS } from '../../shared/texts';
import { experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { IconButton } from '../parts/button';
import { confirm } from '../parts/dialog';
import { Link } from '../parts/link';
import { useId } from '../parts/useId';
import { HIGHEST, LOWEST, type QueueEntry } from './queueFacts';

export interface QueueTableProps {
  title: string;
  entries: readonly QueueEntry[];
  /** When those that wait will probably begin, in seconds. */
  starts?: ReadonlyMap<number, number | null>;
  /** Priorities count. */
  ordered: boolean;
  busy: boolean;
  onPriority: (entry: QueueEntry, priority: number) => void;
  onMove?: (from: number, to: number) => void;
  reload: () => void;
}

export function QueueTable(props: QueueTableProps) {
  const { title, entries, onMove } = props;
  const [dragged, setDragged] = useState<number | null>(null);
  if (entries.length === 0) {
    return null;
  }
  return (
    <section class="det-queue-group">
      <h2>
        {title} <span class="det-tab-count">{formatCount(entries.length)}</span>
      </h2>
      <div
        class="det-cluster-scroll"
        tabIndex={0}
        role="region"
        aria-label={title}
      >
        <table class="det-grid" aria-label={title}>
          <thead>
            <tr>
              {onMove && <th scope="col">Order</th>}
              <th scope="col">Experiment</th>
              <th scope="col">{title === 'Waiting' ? 'Waits for' : 'State'}</th>
              <th scope="col" class="det-number">
                Slots
              </th>
              <th scope="col" class="det-number">
                Priority
              </th>
              <th scope="col">
                <span class="det-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, index) => (
              <tr
                key={entry.id}
                draggable={onMove !== undefined}
                data-dragged={dragged === index}
                onDragStart={() => setDragged(index)}
                onDragEnd={() => setDragged(null)}
                onDragOver={event => dragged !== null && event.preventDefault()}
                onDrop={event => {
                  event.preventDefault();
                  if (dragged !== null && dragged !== index) {
                    onMove?.(dragged, index);
                  }
                  setDragged(null);
                }}
              >
                {onMove && (
                  <Order
                    entry={entry}
                    index={index}
                    count={entries.length}
                    busy={props.busy}
                    onMove={onMove}
                  />
                )}
                <Cells entry={entry} {...props} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Order({
  entry,
  index,
  count,
  busy,
  onMove
}: {
  entry: QueueEntry;
  index: number;
  count: number;
  busy: boolean;
  onMove: (from: number, to: number) => void;
}) {
  return (
    <td class="det-queue-order">
      <IconButton
        icon="up"
        label={`Move ${entry.name} up`}
        disabled={busy || index === 0}
        onClick={() => onMove(index, index - 1)}
      />
      <IconButton
        icon="down"
        label={`Move ${entry.name} down`}
        disabled={busy || index === count - 1}
        onClick={() => onMove(index, index + 1)}
      />
    </td>
  );
}

function Cells({
  entry,
  starts,
  ordered,
  busy,
  onPriority,
  reload
}: QueueTableProps & { entry: QueueEntry }) {
  return (
    <>
      <td class="det-queue-name">
        <Link to={experimentAddress(entry.id)}>
          #{entry.id} {entry.name}
        </Link>
      </td>
      <td>{stateText(entry, starts)}</td>
      <td class="det-number">{slotsText(entry)}</td>
      <td class="det-number">
        {ordered ? (
          <Priority entry={entry} busy={busy} onPriority={onPriority} />
        ) : (
          <span title={`Weight ${entry.weight}`}>—</span>
        )}
      </td>
      <td class="det-queue-end">
        <Actions entry={entry} reload={reload} />
      </td>
    </>
  );
}

function stateText(
  entry: QueueEntry,
  starts?: ReadonlyMap<number, number | null>
): string {
  if (starts !== undefined) {
    const start = starts.get(entry.id) ?? null;
    const when = start === null || start === 0 ? '' : formatLeft(start);
    const reason = entry.waits_for || entry.notice || 'its turn';
    return when ? `${reason}; probably begins in ${when}` : reason;
  }
  const left = entry.seconds_left;
  const parts = [
    formatPercent(entry.progress),
    typeof left === 'number' ? `${formatLeft(left)} left` : '',
    entry.queued > 0 && entry.running > 0
      ? `${formatCount(entry.queued)} more ${entry.queued === 1 ? 'trial waits' : 'trials wait'}`
      : ''
  ];
  return parts.filter(Boolean).join(', ');
}

function slotsText({ held = [], slots_per_trial, max_slots }: QueueEntry) {
  const most = max_slots === null ? '' : ` (at most ${max_slots})`;
  return held.length > 0
    ? `${held.length}${most}`
    : `${slots_per_trial} per trial${most}`;
}

function Priority({
  entry,
  busy,
  onPriority
}: Pick<QueueTableProps, 'busy' | 'onPriority'> & { entry: QueueEntry }) {
  const [problem, setProblem] = useState('');
  const id = useId();
  const commit = (input: HTMLInputElement) => {
    const priority = input.valueAsNumber;
    const valid =
      Number.isInteger(priority) && priority >= LOWEST && priority <= HIGHEST;
    setProblem(
      valid ? '' : `A whole number from ${LOWEST} to ${HIGHEST}, please.`
    );
    if (!valid) {
      return; // what was typed stays, to be mended
    }
    if (priority !== entry.priority) {
      onPriority(entry, priority);
    }
  };
  return (
    <>
      <input
        key={entry.priority}
        class="det-input det-queue-priority"
        type="number"
        min={LOWEST}
        max={HIGHEST}
        defaultValue={String(entry.priority)}
        disabled={busy}
        title="Lower comes first"
        aria-label={`Priority of ${entry.name}, lower comes first`}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? id : undefined}
        onInput={() => setProblem('')}
        onBlur={event => commit(event.currentTarget)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            commit(event.currentTarget);
          } else if (event.key === 'Escape') {
            event.currentTarget.value = String(entry.priority);
            setProblem('');
          }
        }}
      />
      {problem && (
        <span id={id} class="det-queue-problem" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}

function Actions({ entry, reload }: { entry: QueueEntry; reload: () => void }) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const root = useRef<HTMLDivElement>(null);
  const act = async (action: Action, question = '', name = '') => {
    const agreed =
      question === '' ||
      (await confirm(root.current!, {
        title: `${name} #${entry.id} ${entry.name}?`,
        body: question,
        action: name,
        danger: true
      }));
    if (agreed) {
      try {
        await actOn(api, entry.id, action);
      } catch (error) {
        toasts.error(error);
      }
      reload();
    }
  };
  const paused = entry.state === 'PAUSED';
  return (
    <div ref={root} class="det-queue-actions">
      <IconButton
        icon={paused ? 'play' : 'pause'}
        label={`${paused ? 'Resume' : 'Pause'} ${entry.name}`}
        onClick={() => void act(paused ? 'resume' : 'pause')}
      />
      <IconButton
        icon="stop"
        label={`Stop ${entry.name}`}
        onClick={() => void act('stop', TEXTS.confirmStop, 'Stop')}
      />
      <IconButton
        icon="close"
        label={`Kill ${entry.name}`}
        onClick={() => void act('kill', TEXTS.confirmKill, 'Kill')}
      />
    </div>
  );
}
