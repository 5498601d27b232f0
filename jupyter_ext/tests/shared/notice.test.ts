// @vitest-environment jsdom
import { describe, expect, it, vi } from 'vitest';

import type { ExperimentView } from '../../src/shared/model';
import { buttonOf } from './browserParts';
import { NASTY, NOW } from './examples';
import { frame, shown } from './shownView';

describe('the notice', () => {
  it('says that the connection is lost, and tries again on demand; what was known stays', async () => {
    const { text, root, source, show } = shown();
    const since = NOW;
    const lost = {
      kind: 'lost',
      since,
      state: 'unreachable',
      message: NASTY,
      remedy: 'Wait.'
    };
    await show({ connection: lost as ExperimentView['connection'] });
    expect(text('.det-notice')).toContain(`${NASTY}. Wait. Trying again…`);
    expect(text('.det-name')).toBe('digits');
    buttonOf(root, 'Try now').click();
    expect(source.retries).toBe(1);
    await show({
      connection: { ...lost, state: 'gone' } as ExperimentView['connection']
    });
    expect(() => buttonOf(root, 'Try now')).toThrow();
    await show({ connection: { kind: 'live' } });
    expect(text('.det-notice')).toBe('');
  });

  it('says that there is no such experiment, and asks again on demand', async () => {
    const { text, root, source, show } = shown({
      id: 4711,
      experiment: null,
      connection: { kind: 'missing' }
    });
    expect(text('.det-notice > span')).toBe(
      'There is no experiment 4711 on this master.'
    );
    expect(text('.det-facts')).toBe('');
    buttonOf(root, 'Try now').click();
    expect(source.retries).toBe(1);
    await show({ trialId: 5 });
    expect(text('.det-notice > span')).toBe(
      'There is no trial 5 of experiment 4711 on this master.'
    );
  });

  it('starts a master where none runs and the server can start one', async () => {
    const { text, root, source, show } = shown();
    const none = {
      kind: 'lost',
      since: NOW,
      state: 'none',
      message: 'No master runs in /home.',
      remedy: 'Start one here.'
    } as const;
    await show({ connection: none });
    expect(() => buttonOf(root, 'Start a master')).toThrow();
    const start = vi.fn(() => Promise.resolve());
    Object.assign(source, { start });
    await show({ connection: { ...none } });
    buttonOf(root, 'Start a master').click();
    expect(start).toHaveBeenCalledTimes(1);
    expect(buttonOf(root, 'Start a master').disabled).toBe(true);
    await frame();
    start.mockRejectedValueOnce(new Error('Port in use.'));
    buttonOf(root, 'Start a master').click();
    await frame();
    expect(text('.det-notice > span')).toBe('Port in use.');
    await show({ connection: { ...none, state: 'starting' } });
    expect(() => buttonOf(root, 'Start a master')).toThrow();
  });
});
