/** What a trial has logged besides metrics, with one slider over batches that moves all of it. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { ExperimentFeed } from '../../shared/feed';
import { MediaCard } from '../../shared/mediaCard';
import { MediaContents } from '../../shared/mediaContents';
import type { ExperimentView } from '../../shared/model';
import { type MediaSeries, seriesOf, seriesText } from '../../shared/outputs';
import { numberOf, trialNumber } from '../../shared/trialNumbers';
import { useParameter, useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { Select } from '../parts/field';
import { bound } from './boardState';
import { HistogramMap } from './histogramMap';

export interface MediaPartProps {
  readonly view: ExperimentView;
  readonly feed: ExperimentFeed;
}

export function MediaPart({ view, feed }: MediaPartProps) {
  const { toasts } = useWorkspace();
  const { outputs, trials } = view;
  const media = outputs?.media;
  const trialId = outputs?.trialId ?? 0;
  const [known, setKnown] = useState(false);
  const contents = useMemo(
    () => new MediaContents(medium => feed.content(medium)),
    [feed, trialId]
  );
  useEffect(() => () => contents.dispose(), [contents]);
  const series = useMemo(() => seriesOf(media ?? []), [media]);
  const [text, setText] = useParameter('at');
  const batch = bound(text);
  useEffect(() => {
    // Another trial may have some, where this one was chosen.
    setKnown(before => before || series.length > 0);
  }, [series]);
  if (!known && series.length === 0) {
    return null;
  }
  const choose = (value: string) =>
    void feed
      .chooseOutputs(value === '' ? null : Number(value))
      .catch((error: unknown) => toasts.error(error));
  return (
    <section class="det-media-part" aria-label="Logged media">
      <h2 class="det-board-heading">
        {trials.length > 1
          ? `Logged by trial ${numberOf(trials, trialId)}`
          : 'Logged'}
        {series.length > 0 && `: ${seriesText(series)}`}
      </h2>
      <div class="det-board-tools" role="group" aria-label="What is shown">
        {trials.length > 1 && (
          <Select
            label="Trial"
            value={outputs?.chosen ? String(trialId) : ''}
            choices={[
              { value: '', label: 'The best' },
              ...trials.map(trial => ({
                value: String(trial.id),
                label: `Trial ${trialNumber(trial)}`
              }))
            ]}
            onChange={choose}
          />
        )}
        <BatchSlider
          series={series}
          batch={batch}
          onChange={at => setText(at === null ? '' : String(at))}
        />
      </div>
      {series.length === 0 ? (
        <p class="det-curve-note">
          This trial has logged nothing of that kind.
        </p>
      ) : (
        <div class="det-view det-media-view">
          <div class="det-media-grid">
            {series.map(each => (
              <div key={`${trialId} ${each.key}`} class="det-media-cell">
                <Card series={each} contents={contents} batch={batch} />
                {each.kind === 'histogram' && each.moments.length > 1 && (
                  <HistogramMap
                    series={each}
                    contents={contents}
                    batch={batch}
                  />
                )}
              </div>
            ))}
          </div>
        </div>
      )}
    </section>
  );
}

function Card({
  series,
  contents,
  batch
}: {
  series: MediaSeries;
  contents: MediaContents;
  batch: number | null;
}) {
  const place = useRef<HTMLDivElement>(null);
  const card = useRef<MediaCard | null>(null);
  useEffect(() => {
    const made = new MediaCard(contents);
    card.current = made;
    place.current?.replaceChildren(made.root);
    return () => {
      card.current = null;
      made.dispose();
    };
  }, [contents]);
  useEffect(() => card.current?.update(series), [series, contents]);
  useEffect(() => card.current?.moveTo(batch), [batch, contents]);
  return <div ref={place} />;
}

interface BatchSliderProps {
  readonly series: readonly MediaSeries[];
  readonly batch: number | null;
  readonly onChange: (batch: number | null) => void;
}

/** Stands at the newest batch, where new ones come, until it is moved. */
function BatchSlider({ series, batch, onChange }: BatchSliderProps) {
  const batches = useMemo(() => batchesOf(series), [series]);
  if (batches.length < 2) {
    return null;
  }
  const last = batches.length - 1;
  const at =
    batch === null
      ? last
      : Math.max(
          batches.findLastIndex(each => each <= batch),
          0
        );
  const shown = (batches[at] ?? 0).toLocaleString('en');
  return (
    <span class="det-board-smoothing">
      <label class="det-media-slider">
        All at batch
        <input
          class="det-board-slider"
          type="range"
          data-lm-suppress-shortcuts="true"
          min={0}
          max={last}
          step={1}
          value={at}
          aria-valuetext={`batch ${shown}`}
          onInput={event => {
            const index = Number(event.currentTarget.value);
            onChange(index === last ? null : (batches[index] ?? null));
          }}
        />
      </label>
      <output>{batch === null ? `${shown} (newest)` : shown}</output>
      {batch !== null && <Button onClick={() => onChange(null)}>Newest</Button>}
    </span>
  );
}

/** All batches after which anything was logged, ascending. */
export function batchesOf(series: readonly MediaSeries[]): number[] {
  return [
    ...new Set(
      series.flatMap(({ moments }) => moments.map(({ batch }) => batch))
    )
  ].sort((one, other) => one - other);
}
