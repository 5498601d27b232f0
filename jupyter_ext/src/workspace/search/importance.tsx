/** How much each hyperparameter has to do with the metric: worked out by the master. */

import { useCallback, useEffect } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { ExperimentId } from '../../shared/model';
import { ofExperiment } from '../../shared/requests';
import { useApi } from '../app/context';
import { useLoad } from '../data/useLoad';
import { ErrorBox } from '../parts/errorBox';
import { Loading } from '../parts/state';
import { PlotCard } from './plotCard';
import { barsScene } from './scenes';
import type { Analysis } from './useAnalysis';

const MOST_BARS = 15;
const LONGEST_NAME = 1000;

export function ImportanceSection({
  id,
  metric,
  ended,
  analysis
}: {
  id: ExperimentId;
  metric: string;
  /** How many trials have ended: with more it is worked out anew. */
  ended: number;
  analysis: Analysis;
}) {
  const api = useApi();
  const asked = metric.length <= LONGEST_NAME;
  const loaded = useLoad(asked ? `importance ${id} ${metric}` : null, signal =>
    dataOf(
      api.GET('/api/v1/experiments/{experiment_id}/importance', {
        params: { ...ofExperiment(id), query: { metric } },
        signal
      })
    )
  );
  const { data, error } = loaded;
  useEffect(() => {
    if (data !== null && ended !== data.total) {
      loaded.reload();
    }
  }, [ended]);
  const bars = (data?.importances ?? []).slice(0, MOST_BARS);
  const draw = useCallback(
    (
      size: { width: number; height: number },
      colours: Parameters<typeof barsScene>[2]
    ) =>
      barsScene(
        bars.map(({ name, importance: share }) => ({ name, share })),
        size,
        colours
      ),
    [data]
  );
  const title = 'Importance of hyperparameters';
  if (!asked) {
    return (
      <Sentence
        title={title}
        text="The name of this metric is too long to ask the master for it."
      />
    );
  }
  if (error !== null && data === null) {
    return (
      <div class="det-plot">
        <ErrorBox
          title="The importance could not be worked out."
          error={error}
          onRetry={() => loaded.reload()}
        />
      </div>
    );
  }
  if (data === null) {
    return (
      <figure class="det-plot" aria-label={title}>
        <figcaption class="det-plot-head">
          <span class="det-plot-title">{title}</span>
        </figcaption>
        <Loading label="The importance is being worked out…" />
      </figure>
    );
  }
  if (bars.length === 0) {
    return <Sentence title={title} text={data.notes?.join(' ') ?? ''} />;
  }
  return (
    <PlotCard
      title={title}
      description={`Share of the variance of ${metric} that each hyperparameter explains: ${bars.map(({ name, importance }) => `${name} ${importance.toFixed(2)}`).join(', ')}`}
      height={16 + bars.length * 24}
      draw={draw}
      table={() => ({
        columns: ['Hyperparameter', 'Importance'],
        rows: data.importances?.map(each => [each.name, each.importance]) ?? []
      })}
      hover={analysis.hover}
      tell={analysis.tell}
      notes={[
        `Share of the variance of the metric, by fANOVA, over ${data.trials.toLocaleString('en')} trials.`,
        ...(data.notes ?? [])
      ]}
    />
  );
}

function Sentence({ title, text }: { title: string; text: string }) {
  return (
    <figure class="det-plot" aria-label={title}>
      <figcaption class="det-plot-head">
        <span class="det-plot-title">{title}</span>
      </figcaption>
      <p class="det-plot-note">{text}</p>
    </figure>
  );
}
