/** A stretch in full between the coarse points around it. Pure. */

import type { MetricCurve } from '../../shared/model';

/** Curves with the points of a stretch put in the place of their own there. */
export function withStretch(
  curves: readonly MetricCurve[],
  fine: readonly MetricCurve[],
  [first, last]: readonly [number, number]
): MetricCurve[] {
  const key = ({ trial_id, kind, name }: MetricCurve) =>
    `${trial_id} ${kind} ${name}`;
  const byKey = new Map(fine.map(curve => [key(curve), curve]));
  return curves.map(curve => {
    const inside = byKey.get(key(curve));
    if (!inside || inside.batch.length === 0) {
      return curve;
    }
    // What has come since the stretch was asked for is beyond its end.
    const from = Math.min(first, inside.batch[0]!);
    const to = Math.min(last, inside.batch.at(-1)!);
    const before = indices(curve.batch, batch => batch < from);
    const after = indices(curve.batch, batch => batch > to);
    const put = <T>(own: readonly T[], fine: readonly T[]): T[] => [
      ...before.map(at => own[at]!),
      ...fine,
      ...after.map(at => own[at]!)
    ];
    return {
      ...curve,
      batch: put(curve.batch, inside.batch),
      minimum: put(curve.minimum, inside.minimum),
      maximum: put(curve.maximum, inside.maximum),
      mean: put(curve.mean, inside.mean)
    };
  });
}

/** Whether a curve has fewer points than were reported: its buckets have more than a value. */
export function isCoarse(curves: readonly MetricCurve[]): boolean {
  return curves.some(({ minimum, maximum }) =>
    minimum.some((value, at) => value !== maximum[at])
  );
}

function indices(
  batches: readonly number[],
  keep: (batch: number) => boolean
): number[] {
  return batches.flatMap((batch, at) => (keep(batch) ? [at] : []));
}
