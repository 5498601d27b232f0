/** All values that were reported, for a file. */

import { type Api, dataOf } from '../../shared/api';
import type { MetricCurve } from '../../shared/model';
import { ofTrial } from '../../shared/requests';
import { placesOf, type TrialAxes } from './clock';
import { asValue } from './curveSeries';
import type { ChartData, Series } from './series';

const PAGE = 10_000;

interface Row {
  readonly batch: number;
  readonly metrics: Readonly<Record<string, unknown>>;
}

/** The series of a chart with every value; those of the system as they are. `drawnNames` have curves of their own. */
export async function fullSeries(
  api: Api,
  axes: ReadonlyMap<number, TrialAxes>,
  drawnNames: ReadonlySet<string>,
  { series }: ChartData,
  signal: AbortSignal
): Promise<Series[]> {
  const found: Series[] = [];
  const rows = new Map<string, readonly Row[]>();
  for (const each of series) {
    const { source } = each;
    if (!each.reduced || source === undefined) {
      found.push(each);
      continue;
    }
    const { trialId, kind, name } = source;
    const key = `${trialId} ${kind}`;
    const known = rows.get(key) ?? (await allRows(api, trialId, kind, signal));
    rows.set(key, known);
    const drawn = drawnName(known, kind, name, drawnNames);
    const kept = known.filter(({ metrics }) => drawn in metrics);
    const batch = kept.map(row => row.batch);
    const trialAxes = axes.get(trialId);
    found.push({
      ...each,
      x: trialAxes ? placesOf(trialAxes, batch) : { batch },
      values: kept.map(({ metrics }) => asValue(metrics[drawn])),
      band: null,
      reduced: false
    });
  }
  return found;
}

async function allRows(
  api: Api,
  trialId: number,
  kind: MetricCurve['kind'],
  signal: AbortSignal
): Promise<Row[]> {
  const found: Row[] = [];
  for (;;) {
    const query = { kind, after_batch: found.at(-1)?.batch ?? -1, limit: PAGE };
    const page = await dataOf(
      api.GET('/api/v1/trials/{trial_id}/metrics', {
        params: { ...ofTrial(trialId), query },
        signal
      })
    );
    if (page.length === 0) {
      return found;
    }
    for (const row of page) {
      found.push(row);
    }
  }
}

/**
 * The name of the rows of which a curve is drawn: of a mean over the epoch so far that of single batches, or of epochs.
 *
 * A metric that has a curve of its own stands for no other.
 */
function drawnName(
  rows: readonly Row[],
  kind: string,
  name: string,
  drawnNames: ReadonlySet<string>
): string {
  const companions = [`batch_${name}`, `epoch_${name}`];
  return (
    companions.find(
      each =>
        kind === 'training' &&
        !drawnNames.has(each) &&
        rows.some(({ metrics }) => each in metrics)
    ) ?? name
  );
}
