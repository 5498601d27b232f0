/** The head of an experiment's page: which it is, how it goes, and what can be done with it. */

import {
  formatDuration,
  formatPercent,
  wholePercent
} from '../../shared/format';
import { progressOf } from '../../shared/facts';
import { isTerminal } from '../../shared/model';
import { shortName } from '../../shared/paths';
import { experimentStateText, TEXTS } from '../../shared/texts';
import { StateBadge } from '../parts/state';
import { Actions } from './actions';
import { EditableText } from './editableText';
import { Labels } from './labels';
import type { LiveExperiment } from './useExperiment';

export function Head({
  live,
  early = false
}: {
  live: LiveExperiment;
  /** The rest is loading: what can be done with it is not there yet. */
  early?: boolean;
}) {
  const { view, change } = live;
  const { experiment, id } = view;
  if (experiment === null) {
    return null;
  }
  const state = experimentStateText(experiment);
  return (
    <div class="det-exp-head">
      <div class="det-page-head">
        <span class="det-exp-number">{shortName(id)}</span>
        <EditableText
          label="Name"
          value={experiment.name}
          longest={1000}
          onSave={early ? undefined : name => change({ name })}
        >
          <h1 title={experiment.name}>
            {experiment.name || `Experiment ${id}`}
          </h1>
        </EditableText>
        <span role="status">
          <StateBadge state={state} />
          {state.note && <span class="det-exp-muted"> {state.note}</span>}
        </span>
        {experiment.in_kernel && (
          <span class="det-exp-tag" title={TEXTS.noPause}>
            {TEXTS.inKernel}
          </span>
        )}
        {experiment.archived && <span class="det-exp-tag">Archived</span>}
        {experiment.test && <span class="det-exp-tag">Test run</span>}
        {!early && <Actions live={live} />}
      </div>
      <Progress live={live} />
      <Labels
        labels={experiment.labels ?? []}
        onChange={early ? undefined : change}
      />
    </div>
  );
}

function Progress({ live: { view } }: { live: LiveExperiment }) {
  const { experiment } = view;
  if (experiment === null || isTerminal(experiment.state)) {
    return null;
  }
  const fraction = progressOf(view);
  const seconds = experiment.seconds_left;
  return (
    <div class="det-exp-progress">
      <div
        class="det-exp-bar"
        role="progressbar"
        aria-label="Progress"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={wholePercent(fraction)}
        data-paused={experiment.state === 'PAUSED'}
      >
        <div style={{ width: `${fraction * 100}%` }} />
      </div>
      <span class="det-exp-muted">
        {formatPercent(fraction)}
        {typeof seconds === 'number' &&
          ` · about ${formatDuration(seconds)} left`}
      </span>
    </div>
  );
}
