// @vitest-environment jsdom
/** Notices of an experiment and its trials: each thing once, and nothing that a failure says already. */
import '../shared/browserParts';

import { cleanup, render, screen, within } from '@testing-library/preact';
import { afterEach, expect, test } from 'vitest';

import {
  noticesOf,
  trialsText,
  warningOf
} from '../../src/workspace/experiment/notices';
import { Notices } from '../../src/workspace/experiment/overview';
import { detail, trial, userError, view } from '../shared/examples';

afterEach(cleanup);

const NAN =
  'The loss became nan at batch 3; the training goes on (nan: warn). Take less.';

const trialsWith = (warnings: readonly string[]) =>
  warnings.map((warning, index) => trial({ id: index + 1, warning }));

test('what several trials warn of is said once, with the trials', () => {
  const shown = view({
    experiment: detail({ warning: NAN, notice: 'Waits for slots.' }),
    trials: trialsWith([NAN, NAN, NAN, NAN, NAN, NAN, 'Odd.'])
  });

  expect(noticesOf(shown)).toEqual([
    'Waits for slots.',
    `Trials 1 to 6: ${NAN}`,
    'Trial 7: Odd.'
  ]);
  expect(noticesOf({ ...shown, trials: trialsWith([NAN]) })).toEqual([
    'Waits for slots.',
    NAN
  ]);
  expect(noticesOf({ ...shown, trials: [] })).toEqual([
    'Waits for slots.',
    NAN
  ]);
});

test('trials are named in ranges', () => {
  expect(trialsText([3])).toBe('Trial 3');
  expect(trialsText([9, 1, 2, 5, 6, 7])).toBe('Trials 1, 2, 5 to 7, 9');
});

test('a warning does not repeat what a trial failed by, and does not say that a failed trial goes on', () => {
  const failed = (message: string) =>
    trial({
      state: 'ERROR',
      warning: NAN,
      error: userError({ message })
    });

  expect(warningOf(failed('The loss became NaN, and it ends.'))).toBe('');
  expect(warningOf(failed('bad shape'))).toBe(
    'The loss became nan at batch 3. Take less.'
  );
  expect(warningOf(trial({ warning: NAN }))).toBe(NAN);
  expect(
    noticesOf(
      view({
        experiment: detail({ warning: NAN }),
        trials: [failed('The loss became NaN.')]
      })
    )
  ).toEqual([]);
});

test('of many notices the first three are seen, and the rest is folded', () => {
  const trials = trialsWith(['a', 'b', 'c', 'd', 'e']);
  render(<Notices view={view({ trials })} />);

  const more = screen.getByText('2 more').closest('details')!;
  expect(more.open).toBe(false);
  expect(within(more).getByText('Trial 5: e')).toBeTruthy();
  expect(within(more).queryByText('Trial 3: c')).toBeNull();
});
