/** The cases of `tests/schema/test_ranking.py`: Python and the front end have one rule. */

import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { bestCheckpoint, bestTrial } from '../../src/shared/facts';
import {
  checkpointsBestFirst,
  trialsBestFirst
} from '../../src/shared/ranking';
import { checkpoint, detail, trial, view } from './examples';

interface Cases {
  trials: Array<{
    case: string;
    smaller_is_better: boolean;
    trials: Array<[number, number | null]>;
    order: number[];
  }>;
  checkpoints: Array<{
    case: string;
    smaller_is_better: boolean;
    checkpoints: Array<[string, number, number, number | string | null]>;
    order: string[];
  }>;
}

const CASES = JSON.parse(
  readFileSync('../tests/schema/ranking_cases.json', 'utf8')
) as Cases;

describe('trials are ranked', () => {
  it.each(CASES.trials)('$case', each => {
    const smaller = each.smaller_is_better;
    const found = each.trials.map(([id, value]) =>
      trial({ id, best_validation: value })
    );
    expect(trialsBestFirst(found, smaller).map(({ id }) => id)).toEqual(
      each.order
    );
    const experiment = detail({ smaller_is_better: smaller });
    expect(bestTrial(view({ experiment, trials: found }))?.id).toBe(
      each.order[0]
    );
  });
});

describe('checkpoints are ranked', () => {
  it.each(CASES.checkpoints)('$case', each => {
    const smaller = each.smaller_is_better;
    const found = each.checkpoints.map(([uuid, trial_id, batch, loss]) =>
      checkpoint({
        uuid,
        trial_id,
        batch,
        created: '',
        metrics: loss === null ? {} : { loss }
      })
    );
    expect(
      checkpointsBestFirst(found, 'loss', smaller).map(({ uuid }) => uuid)
    ).toEqual(each.order);
    const known = each.checkpoints.some(([, , , loss]) =>
      Number.isFinite(loss)
    );
    expect(bestCheckpoint(found, 'loss', smaller)?.uuid ?? null).toBe(
      known ? each.order[0] : null
    );
  });
});
