/** Rows of the tables that put experiments side by side. Pure. */

import { formatDuration, formatValue } from '../../shared/format';
import { flatHparams } from '../../shared/hparams';
import type { Trial } from '../../shared/model';
import { experimentStateText } from '../../shared/texts';
import { trialNumber } from '../../shared/trialNumbers';
import { analysedTrials, smallerIsBetter } from '../search/trials';
import type { Compared } from './load';

export interface Row {
  readonly name: string;
  /** A text for each experiment; null where it has none. */
  readonly texts: ReadonlyArray<string | null>;
  /** Whether they are not all the same. */
  readonly differs: boolean;
  readonly numeric: boolean;
  /** Places of the best values; none where there is nothing to compare. */
  readonly best: ReadonlySet<number>;
}

export interface Side {
  readonly compared: Compared;
  readonly trial: Trial | null;
}

const NONE: ReadonlySet<number> = new Set();

function row(
  name: string,
  texts: ReadonlyArray<string | null>,
  numeric = false,
  best: ReadonlySet<number> = NONE
): Row {
  return { name, texts, numeric, best, differs: new Set(texts).size > 1 };
}

/** What experiments are. */
export function factRows(sides: readonly Side[]): Row[] {
  const of = (
    name: string,
    text: (side: Side) => string | null,
    numeric = false
  ) => row(name, sides.map(text), numeric);
  const detail = (side: Side) => side.compared.detail;
  return [
    of('State', side => experimentStateText(detail(side)).word),
    of('Created', side => new Date(detail(side).created).toLocaleString()),
    of(
      'Duration',
      side => {
        const { started, ended, created } = detail(side);
        const end = ended ? Date.parse(ended) : Date.now();
        return formatDuration((end - Date.parse(started ?? created)) / 1000);
      },
      true
    ),
    of('Trials', side => detail(side).trials.toLocaleString('en'), true),
    of('Trial shown', ({ trial }) =>
      trial === null ? null : `trial ${trialNumber(trial)}`
    ),
    of(
      'Batches of the trial',
      ({ trial }) => trial?.batches.toLocaleString('en') ?? null,
      true
    ),
    of('Framework', side => detail(side).framework),
    of('Project', side => detail(side).project || null),
    of('Labels', side => detail(side).labels?.join(', ') || null),
    of('Description', side => detail(side).description || null),
    of('Forked from', side => {
      const from = detail(side).forked_from;
      return from ? `#${from}` : null;
    })
  ].filter(({ texts }) => texts.some(text => text !== null));
}

/** Hyperparameters of the trials that are shown. */
export function hparamRows(sides: readonly Side[]): Row[] {
  const values = sides.map(
    ({ trial }) => new Map(trial ? flatHparams(trial.hparams) : [])
  );
  const names = [...new Set(values.flatMap(each => [...each.keys()]))];
  return names.map(name => {
    const own = values.map(each => each.get(name));
    const exact = own.map((value, at) =>
      values[at]!.has(name) ? JSON.stringify(value) : undefined
    );
    return {
      name,
      texts: own.map((value, at) =>
        values[at]!.has(name) ? formatValue(value) : null
      ),
      numeric: own.every(
        value => value === undefined || typeof value === 'number'
      ),
      best: NONE,
      // By all their digits, not by those that are shown.
      differs: new Set(exact).size > 1
    };
  });
}

/** Best values of metrics of the trials that are shown; the best of each row is marked. */
export function metricRows(sides: readonly Side[]): Row[] {
  const values = sides.map(({ compared, trial }) => {
    const { detail, trials, summaries } = compared;
    return trial === null
      ? new Map<string, number>()
      : analysedTrials(
          detail,
          trials.filter(({ id }) => id === trial.id),
          summaries,
          'best'
        )[0]!.metrics;
  });
  const first = sides[0]?.compared.detail ?? null;
  const names = [...new Set(values.flatMap(each => [...each.keys()]))];
  names.sort(
    (one, other) =>
      Number(other === first?.metric) - Number(one === first?.metric) ||
      (one < other ? -1 : 1)
  );
  return names.map(name => {
    const own = values.map(each => each.get(name));
    const finite = own.filter(
      (value): value is number => value !== undefined && Number.isFinite(value)
    );
    const searched =
      sides.find(({ compared }) => compared.detail.metric === name)?.compared
        .detail ?? first;
    const best = smallerIsBetter(name, searched)
      ? Math.min(...finite)
      : Math.max(...finite);
    const places = own.flatMap((value, at) => (value === best ? [at] : []));
    const marked = finite.length > 1 && places.length < finite.length;
    return row(
      name,
      own.map(value => (value === undefined ? null : formatValue(value))),
      true,
      marked ? new Set(places) : NONE
    );
  });
}
