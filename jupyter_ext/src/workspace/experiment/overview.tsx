/** What is to be known of an experiment at a glance. */

import { dataOf } from '../../shared/api';
import { ChartGrid } from '../../shared/chartGrid';
import { bestCheckpoint, bestTrial, slotsText } from '../../shared/facts';
import {
  formatDuration,
  formatValue,
  shortened,
  shortUuid
} from '../../shared/format';
import { formatHparams } from '../../shared/hparams';
import type { ExperimentView, Trial } from '../../shared/model';
import { notebookAddress } from '../../shared/requests';
import { trialNumber } from '../../shared/trialNumbers';
import { addressText, experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Link } from '../parts/link';
import { EditableText } from './editableText';
import { Embedded } from './embedded';
import { Failures } from './failureBox';
import { noticesOf } from './notices';
import { isSearch } from './tabs';
import type { LiveExperiment } from './useExperiment';

/** Seconds from its begin to its end, or to now. */
export function secondsOf(
  { started, ended }: { started?: string | null; ended?: string | null },
  now: number = Date.now()
): number | null {
  if (!started) {
    return null;
  }
  const end = ended ? Date.parse(ended) : now;
  return Math.max(end - Date.parse(started), 0) / 1000;
}

/** `12 of 20 trials done, 1 failed, 3 stopped early`. */
export function trialsDone(view: ExperimentView): string {
  const of = (...states: Array<Trial['state']>) =>
    view.trials.filter(({ state }) => states.includes(state)).length;
  const count = Math.max(view.experiment?.trials ?? 0, view.trials.length);
  const parts = [
    `${of('COMPLETED').toLocaleString('en')} of ${count.toLocaleString('en')} completed`,
    of('RUNNING') && `${of('RUNNING')} running`,
    of('QUEUED') && `${of('QUEUED')} waiting`,
    of('ERROR') && `${of('ERROR')} failed`,
    of('CANCELED') && `${of('CANCELED')} stopped`
  ];
  return parts.filter(Boolean).join(', ');
}

export function Overview({ live }: { live: LiveExperiment }) {
  const { view, change } = live;
  const { experiment } = view;
  if (experiment === null) {
    return null;
  }
  return (
    <div class="det-exp-overview">
      <Failures view={view} />
      <Notices view={view} />
      <div class="det-exp-columns">
        <section class="det-card" aria-label="Facts">
          <dl class="det-facts">
            <dt>Description</dt>
            <dd>
              <EditableText
                label="Description"
                value={experiment.description}
                longest={10_000}
                onSave={description => change({ description })}
              >
                <span>{experiment.description || '—'}</span>
              </EditableText>
            </dd>
            <Best view={view} />
            <Progress view={view} />
            <dt>Duration</dt>
            <dd>{formatDuration(secondsOf(experiment))}</dd>
            <dt>Created</dt>
            <dd>{new Date(experiment.created).toLocaleString()}</dd>
            <dt>Slots</dt>
            <dd>{slotsOf(view)}</dd>
            <dt>Framework</dt>
            <dd>{experiment.framework}</dd>
            <Relations view={view} />
          </dl>
        </section>
        <Embedded make={() => new ChartGrid()} view={view} />
      </div>
    </div>
  );
}

/** Beyond these, notices are folded: the facts stay in sight. */
const NOTICES_SHOWN = 3;

export function Notices({ view }: { view: ExperimentView }) {
  const notices = noticesOf(view);
  const more = notices.slice(NOTICES_SHOWN);
  return notices.length === 0 ? null : (
    <ul class="det-exp-notice" aria-label="Notices">
      {notices.slice(0, NOTICES_SHOWN).map(notice => (
        <li key={notice}>{notice}</li>
      ))}
      {more.length > 0 && (
        <li>
          <details>
            <summary>{`${more.length.toLocaleString('en')} more`}</summary>
            {more.map(notice => (
              <p key={notice}>{notice}</p>
            ))}
          </details>
        </li>
      )}
    </ul>
  );
}

function Best({ view }: { view: ExperimentView }) {
  const { experiment, id } = view;
  const best = bestTrial(view);
  const value = experiment?.best_validation ?? best?.best_validation ?? null;
  const metric = experiment?.metric ?? '';
  const checkpoint = bestCheckpoint(
    view.checkpoints.filter(({ state }) => state === 'COMPLETED'),
    metric,
    experiment?.smaller_is_better ?? true
  );
  return (
    <>
      <dt title={metric}>Best {shortened(metric || 'metric')}</dt>
      <dd>
        <strong>{formatValue(value)}</strong>
        {best && isSearch(view) && (
          <>
            {' in '}
            <Link
              to={addressText(
                { page: 'experiment', id, tab: 'trials' },
                { trial: String(best.id) }
              )}
            >
              trial {trialNumber(best)}
            </Link>
          </>
        )}
        {checkpoint && (
          <>
            {', '}
            <Link to={experimentAddress(id, 'checkpoints')}>
              checkpoint {shortUuid(checkpoint.uuid)}
            </Link>
          </>
        )}
      </dd>
    </>
  );
}

function Progress({ view }: { view: ExperimentView }) {
  const [only] = view.trials;
  if (isSearch(view)) {
    const { searcher } = (view.experiment?.config ?? {}) as {
      searcher?: { name?: unknown };
    };
    return (
      <>
        <dt>Trials</dt>
        <dd>
          {trialsDone(view)}
          {typeof searcher?.name === 'string' && ` (${searcher.name} search)`}
        </dd>
      </>
    );
  }
  if (only === undefined) {
    return null;
  }
  return (
    <>
      <dt>Batches</dt>
      <dd>
        {only.batches.toLocaleString('en')} of{' '}
        {only.target_batches.toLocaleString('en')}
      </dd>
      <dt>Hyperparameters</dt>
      <dd>{formatHparams(only.hparams) || '—'}</dd>
      {only.restarts > 0 && (
        <>
          <dt>Restarts</dt>
          <dd>{only.restarts}</dd>
        </>
      )}
    </>
  );
}

function slotsOf(view: ExperimentView): string {
  const { resources } = (view.experiment?.config ?? {}) as {
    resources?: { slots_per_trial?: number };
  };
  const count = resources?.slots_per_trial;
  const trial = view.trials.find(({ slots = [] }) => slots.length > 0);
  const now = trial ? slotsText(trial, view.experiment) : '';
  if (view.experiment?.in_kernel) {
    return 'none: it trains in a kernel';
  }
  if (count === 0) {
    return 'none: it trains on the processor';
  }
  const each =
    count === undefined
      ? ''
      : `${count} ${count === 1 ? 'slot' : 'slots'} a trial`;
  return [each, now].filter(Boolean).join(', ') || '—';
}

/** Where it comes from, and what was made of it. */
function Relations({ view: { id, experiment } }: { view: ExperimentView }) {
  const api = useApi();
  const { host } = useWorkspace();
  const forks = useLoad(`forks of ${id}`, signal =>
    dataOf(
      api.GET('/api/v1/experiments', {
        params: {
          query: { query: `forked_from = ${id}`, limit: 100, archived: true }
        },
        signal
      })
    )
  );
  const made = forks.data ?? [];
  const from = experiment?.forked_from;
  return (
    <>
      {typeof from === 'number' && (
        <>
          <dt>Made of</dt>
          <dd>
            <Link to={experimentAddress(from)}>experiment {from}</Link>
          </dd>
        </>
      )}
      {made.length > 0 && (
        <>
          <dt>Forks</dt>
          <dd>
            {made.map((each, index) => (
              <span key={each.id}>
                {index > 0 && ', '}
                <Link to={experimentAddress(each.id)}>
                  #{each.id} {each.name}
                </Link>
              </span>
            ))}
          </dd>
        </>
      )}
      {experiment?.notebook && (
        <>
          <dt>Executed notebook</dt>
          <dd class="det-exp-notebook">
            {host.openNotebook && (
              <Button onClick={() => void host.openNotebook?.(id)}>Open</Button>
            )}
            <Button
              icon="download"
              onClick={() => void host.download(notebookAddress(id))}
            >
              Download
            </Button>
          </dd>
        </>
      )}
      <dt>Project</dt>
      <dd>{experiment?.project || '—'}</dd>
    </>
  );
}
