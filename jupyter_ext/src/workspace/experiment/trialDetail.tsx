/** One trial: its facts, hyperparameters and metrics, and what made it fail. */

import { useEffect, useRef } from 'preact/hooks';

import { slotsText } from '../../shared/facts';
import { formatDuration, formatValue, shortened } from '../../shared/format';
import { flatHparams } from '../../shared/hparams';
import type { ExperimentView, Trial } from '../../shared/model';
import { trialStateText } from '../../shared/texts';
import { trialNumber } from '../../shared/trialNumbers';
import { addressText, type Tab } from '../app/address';
import { IconButton } from '../parts/button';
import { Link } from '../parts/link';
import { StateBadge } from '../parts/state';
import { FailureBox } from './failureBox';
import { causesOf } from './failures';
import { warningOf } from './notices';
import { secondsOf } from './overview';
import type { TrialSummary } from './trialColumns';

export function TrialDetail({
  trial,
  view,
  summary,
  onClose
}: {
  trial: Trial;
  view: ExperimentView;
  summary: TrialSummary | undefined;
  onClose: () => void;
}) {
  const root = useRef<HTMLElement>(null);
  useEffect(() => root.current?.focus(), []);
  const number = trialNumber(trial);
  const to = (tab: Tab, parameters: Record<string, string>) =>
    addressText({ page: 'experiment', id: view.id, tab }, parameters);
  const [cause] = causesOf({ ...view, trials: [trial], experiment: null });
  const hparams = flatHparams(trial.hparams);
  const warning = warningOf(trial);
  const metrics = summary?.metrics ?? [];
  const saved = view.checkpoints.filter(
    each => each.trial_id === trial.id && each.state === 'COMPLETED'
  ).length;
  return (
    <section
      ref={root}
      class="det-card det-exp-detail"
      aria-label={`Trial ${number}`}
      tabIndex={-1}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          onClose();
        }
      }}
    >
      <div class="det-page-head">
        <h2>Trial {number}</h2>
        <StateBadge state={trialStateText(trial, view.experiment)} />
        {trial.notice && <span class="det-exp-muted">{trial.notice}</span>}
        <div class="det-actions">
          <Link to={to('logs', { trial: String(trial.id) })}>Log</Link>
          <Link to={to('files', { trial: String(trial.id) })}>Files</Link>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </div>
      </div>
      {cause && <FailureBox failure={cause} view={view} />}
      {warning && <p class="det-exp-notice">{warning}</p>}
      <div class="det-exp-columns">
        <dl class="det-facts">
          <dt>Batches</dt>
          <dd>
            {trial.batches.toLocaleString('en')} of{' '}
            {trial.target_batches.toLocaleString('en')}
          </dd>
          <dt title={view.experiment?.metric ?? ''}>
            Best {shortened(view.experiment?.metric || 'metric')}
          </dt>
          <dd>{formatValue(trial.best_validation)}</dd>
          <dt>Duration</dt>
          <dd>{formatDuration(secondsOf(trial))}</dd>
          <dt>Restarts</dt>
          <dd>{trial.restarts}</dd>
          <dt>Slots</dt>
          <dd>{slotsText(trial, view.experiment) || '—'}</dd>
          <dt>Checkpoints</dt>
          <dd>{saved}</dd>
          <dt>Seed</dt>
          <dd>{trial.seed}</dd>
          {hparams.map(([name, value]) => (
            <>
              <dt title={name}>{shortened(name)}</dt>
              <dd>{formatValue(value)}</dd>
            </>
          ))}
        </dl>
        {metrics.length > 0 && (
          <table class="det-grid" aria-label={`Metrics of trial ${number}`}>
            <thead>
              <tr>
                <th scope="col">Metric</th>
                <th scope="col" class="det-number">
                  Last
                </th>
                <th scope="col" class="det-number">
                  Smallest
                </th>
                <th scope="col" class="det-number">
                  Largest
                </th>
              </tr>
            </thead>
            <tbody>
              {metrics.map(each => (
                <tr key={`${each.kind} ${each.name}`}>
                  <td class="det-exp-metric" title={each.name}>
                    {shortened(each.name)}{' '}
                    <span class="det-exp-muted">{each.kind}</span>
                  </td>
                  <td class="det-number">{formatValue(each.last)}</td>
                  <td class="det-number">{formatValue(each.minimum)}</td>
                  <td class="det-number">{formatValue(each.maximum)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </section>
  );
}
