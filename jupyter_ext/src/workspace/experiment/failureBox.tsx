/** One box for each cause of failure: what, where, what to do; the traceback is folded. */

import type { ExperimentView } from '../../shared/model';
import { addressText, type Tab } from '../app/address';
import { Link } from '../parts/link';
import { causesOf, type Failure, namesOf } from './failures';

const MOST_CAUSES = 5;

export function Failures({ view }: { view: ExperimentView }) {
  const causes = causesOf(view);
  const { experiment } = view;
  const stopped =
    experiment?.state === 'CANCELED' ? experiment.error : undefined;
  const more = causes.length - MOST_CAUSES;
  return (
    <>
      {causes.slice(0, MOST_CAUSES).map((failure, index) => (
        <FailureBox key={index} failure={failure} view={view} />
      ))}
      {more > 0 && (
        <p class="det-exp-muted">
          {more} more {more === 1 ? 'cause' : 'causes'} of failure: the Trials
          tab has the error of each trial.
        </p>
      )}
      {stopped && (
        <p class="det-exp-notice" role="status">
          {[stopped.type, stopped.message].filter(Boolean).join(': ')}
        </p>
      )}
    </>
  );
}

export function FailureBox({
  failure,
  view
}: {
  failure: Failure;
  view: ExperimentView;
}) {
  const { type, message, place, when, remedy, trials, frames, retried } =
    failure;
  const to = (tab: Tab, parameters: Record<string, string>) =>
    addressText({ page: 'experiment', id: view.id, tab }, parameters);
  const again = retried ? '; it is tried again' : '';
  const named = trials.length > 1 ? `: ${namesOf(trials)}` : '';
  return (
    <div class="det-error det-exp-failure" role="alert">
      <p class="det-error-title">
        {whoText(failure, view)} failed {when}
        {again}
        {named}
      </p>
      <p class="det-exp-failure-message">
        {type && <strong>{type}: </strong>}
        {message}
      </p>
      {place && (
        <p>
          In{' '}
          {failure.cell === null || view.experiment?.bundle_id === null ? (
            place
          ) : (
            <Link to={to('code', { cell: String(failure.cell) })}>{place}</Link>
          )}
        </p>
      )}
      {remedy && <p>{remedy}</p>}
      <p class="det-exp-links">
        {failure.trialId !== null && (
          <Link
            to={to('logs', { trial: String(failure.trialId), jump: 'error' })}
          >
            Jump to the error in the log
          </Link>
        )}
      </p>
      {frames.length > 0 && (
        <details class="det-exp-traceback">
          <summary>Traceback</summary>
          <pre tabIndex={0} role="region" aria-label="Traceback">
            {frames.map(({ text, foreign }, index) => (
              <span key={index} data-foreign={foreign}>
                {`${text}\n`}
              </span>
            ))}
          </pre>
        </details>
      )}
    </div>
  );
}

/** `Trial 4`, `12 trials`, `The experiment`. */
function whoText({ trials }: Failure, view: ExperimentView): string {
  if (trials.length === 0 || view.trials.length <= 1) {
    return 'The experiment';
  }
  return trials.length === 1
    ? `Trial ${trials[0]}`
    : `${trials.length.toLocaleString('en')} trials`;
}
