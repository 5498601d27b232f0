/** Two texts compared: side by side where there is room, else one below the other. Marks and words, not only colours. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import {
  countChanges,
  type DiffLine,
  diffRows,
  type DiffStretch,
  foldRows,
  unifiedLines
} from './diffRows';
import { Button } from './button';
import { useWidth } from './useWidth';

const LEAST_WIDTH = 720;
/** Of more rows than these, the rest is drawn when it is asked for. */
const MOST_ROWS = 500;

export interface DiffViewProps {
  before: string;
  after: string;
  /** What the two are, such as `Experiment 3`. */
  beforeLabel: string;
  afterLabel: string;
  /** Named to screen readers and kept as a mark for styles, such as `python`. */
  language?: string;
}

export function DiffView({
  before,
  after,
  beforeLabel,
  afterLabel,
  language
}: DiffViewProps) {
  const root = useRef<HTMLDivElement>(null);
  const wide = useWidth(root, 1000) >= LEAST_WIDTH;
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  const stretches = useMemo(() => foldRows(rows), [rows]);
  const { removed, added } = useMemo(() => countChanges(rows), [rows]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(MOST_ROWS);
  useEffect(() => {
    setOpen(new Set());
    setMost(MOST_ROWS);
  }, [stretches]);
  if (removed + added === 0) {
    return (
      <div ref={root}>
        <p class="det-diff-equal">
          {`${beforeLabel} and ${afterLabel} are the same` +
            (rows.length === 0 ? ': both are empty.' : '.')}
        </p>
      </div>
    );
  }
  let budget = most;
  const bodies = stretches.map((stretch, at) => {
    const { folded, rows: all } = stretch;
    const label = all[0]?.after?.number ?? at;
    if (folded && !open.has(at)) {
      return (
        <tbody key={label}>
          <tr class="det-diff-fold">
            <td colSpan={wide ? 6 : 4}>
              <Button
                look="quiet"
                icon="down"
                onClick={() => setOpen(new Set([...open, at]))}
              >
                {`Show ${linesText(all.length, 'unchanged')}`}
              </Button>
            </td>
          </tr>
        </tbody>
      );
    }
    const drawn = all.slice(0, Math.max(0, budget));
    budget -= all.length;
    const Body = wide ? SideBySide : Unified;
    return <Body key={label} stretch={{ folded, rows: drawn }} />;
  });
  const what = language ? `, ${language}` : '';
  return (
    <div ref={root} class="det-diff" data-language={language}>
      <p class="det-diff-summary">
        {`${linesText(removed, 'removed')}, ${linesText(added, 'added')}`}
      </p>
      <div
        class="det-diff-scroll"
        tabIndex={0}
        role="region"
        aria-label={`Differences of ${beforeLabel} and ${afterLabel}`}
      >
        <table class="det-diff-table" data-wide={wide}>
          <caption class="det-hidden">
            {`${beforeLabel} compared with ${afterLabel}${what}`}
          </caption>
          <thead>
            {wide ? <Heads {...{ beforeLabel, afterLabel }} /> : null}
          </thead>
          {bodies}
        </table>
      </div>
      {budget < 0 && (
        <Button onClick={() => setMost(most + 5 * MOST_ROWS)}>
          {`Show more: ${linesText(-budget, 'not drawn yet')}`}
        </Button>
      )}
    </div>
  );
}

function Heads({
  beforeLabel,
  afterLabel
}: Pick<DiffViewProps, 'beforeLabel' | 'afterLabel'>) {
  return (
    <tr>
      <th scope="colgroup" colSpan={3}>
        {beforeLabel}
      </th>
      <th scope="colgroup" colSpan={3}>
        {afterLabel}
      </th>
    </tr>
  );
}

function SideBySide({ stretch }: { stretch: DiffStretch }) {
  return (
    <tbody>
      {stretch.rows.map(({ kind, before, after }) => (
        <tr key={`${before?.number}/${after?.number}`}>
          <Half line={before} kind={kind === 'same' ? 'same' : 'removed'} />
          <Half line={after} kind={kind === 'same' ? 'same' : 'added'} />
        </tr>
      ))}
    </tbody>
  );
}

type Kind = 'same' | 'removed' | 'added';

function Half({ line, kind }: { line: DiffLine | null; kind: Kind }) {
  const shown = line === null ? 'none' : kind;
  return (
    <>
      <td class="det-diff-number" data-kind={shown}>
        {line?.number}
      </td>
      <Mark kind={shown} />
      <Text kind={shown} text={line?.text ?? ''} />
    </>
  );
}

function Unified({ stretch }: { stretch: DiffStretch }) {
  return (
    <tbody>
      {unifiedLines(stretch.rows).map(({ kind, before, after, text }) => (
        <tr key={`${before}/${after}`}>
          <td class="det-diff-number" data-kind={kind}>
            {before}
          </td>
          <td class="det-diff-number" data-kind={kind}>
            {after}
          </td>
          <Mark kind={kind} />
          <Text kind={kind} text={text} />
        </tr>
      ))}
    </tbody>
  );
}

function Mark({ kind }: { kind: Kind | 'none' }) {
  return (
    <td class="det-diff-mark" data-kind={kind}>
      {kind === 'removed' && <span aria-hidden="true">−</span>}
      {kind === 'added' && <span aria-hidden="true">+</span>}
      {(kind === 'removed' || kind === 'added') && (
        <span class="det-hidden">{kind}</span>
      )}
    </td>
  );
}

function Text({ kind, text }: { kind: Kind | 'none'; text: string }) {
  return (
    <td class="det-diff-text" data-kind={kind}>
      {kind === 'removed' ? (
        <del>{text}</del>
      ) : kind === 'added' ? (
        <ins>{text}</ins>
      ) : (
        text
      )}
    </td>
  );
}

function linesText(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'line' : 'lines'} ${what}`;
}
