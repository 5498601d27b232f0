// @vitest-environment jsdom
import { buttonOf, nameOf } from './browserParts';
import { describe, expect, it, vi } from 'vitest';

import type { ExperimentState } from '../../src/shared/model';
import { TEXTS } from '../../src/shared/texts';
import { RequestError } from '../../src/shared/transport';
import { detail, NASTY, statesOf } from './examples';
import { frame, shown } from './shownView';

describe('the buttons of each state', () => {
  const EXPECTED: Record<ExperimentState, string[]> = {
    QUEUED: ['Stop'],
    ACTIVE: ['Pause', 'Stop'],
    PAUSED: ['Resume', 'Stop'],
    STOPPING_CANCELED: ['Kill'],
    STOPPING_COMPLETED: [],
    STOPPING_ERROR: [],
    CANCELED: [],
    COMPLETED: [],
    ERROR: [],
    DELETED: []
  };

  it.each(statesOf('ExperimentState'))('%s', state => {
    const { root } = shown({
      experiment: detail({ state: state as ExperimentState })
    });
    const usable = [
      ...root.querySelectorAll<HTMLButtonElement>('.det-actions button')
    ].filter(each => !each.closest('[hidden]') && !each.disabled);
    expect(usable.map(nameOf)).toEqual(EXPECTED[state as ExperimentState]);
    expect(usable.every(each => each.type === 'button')).toBe(true);
  });

  it('stand beside a state that hides nothing', async () => {
    const failed = { trials: 8, failed_trials: 2 };
    const { text, show } = shown({
      experiment: detail({ state: 'COMPLETED', ...failed })
    });
    expect(text('.det-badge')).toBe('Completed, 2 of 8 trials failed');
    await show({ experiment: detail({ state: 'COMPLETED' }) });
    expect(text('.det-badge')).toBe('Completed');
  });

  it('ask for what they say', async () => {
    const { root, source, show } = shown();
    buttonOf(root, 'Pause').click();
    expect(source.acts).toEqual(['pause']);
    await show({ experiment: detail({ state: 'PAUSED' }) });
    buttonOf(root, 'Resume').click();
    expect(source.acts).toEqual(['pause', 'resume']);
  });

  it('are held while something is asked for, and say what is refused', async () => {
    const { root, source, text } = shown();
    let refuse: (error: Error) => void = () => undefined;
    source.answer = () => new Promise((_, reject) => (refuse = reject));
    buttonOf(root, 'Pause').click();
    expect(buttonOf(root, 'Pause').disabled).toBe(true);
    buttonOf(root, 'Pause').click();
    refuse(new RequestError(NASTY, 409, 'refused', 'Try later.'));
    await frame();
    expect(source.acts).toEqual(['pause']);
    expect(text('[role=alert]')).toBe(`Pause failed: ${NASTY} Try later.`);
    expect(buttonOf(root, 'Pause').disabled).toBe(false);
    source.answer = () => Promise.resolve();
    buttonOf(root, 'Pause').click();
    expect(text('[role=alert]')).toBe('');
  });

  it('say what failed until the state is another one, or the connection is back', async () => {
    const { root, source, text, show } = shown();
    const fail = async (name: string) => {
      buttonOf(root, name).click();
      await frame();
      return text('.det-header [role=alert]');
    };
    source.answer = () => Promise.reject(new Error('No.'));
    expect(await fail('Pause')).toBe('Pause failed: No.');
    await show({ experiment: detail({ progress: 0.5 }) });
    expect(text('.det-header [role=alert]')).toBe('Pause failed: No.');
    await show({ experiment: detail({ state: 'PAUSED' }) });
    expect(text('.det-header [role=alert]')).toBe('');
    expect(await fail('Resume')).toBe('Resume failed: No.');
    await show({ connection: { kind: 'connecting' } });
    expect(text('.det-header [role=alert]')).toBe('Resume failed: No.');
    await show({ connection: { kind: 'live' } });
    expect(text('.det-header [role=alert]')).toBe('');
    buttonOf(root, 'Stop').click();
    expect(await fail('Stop it')).toBe('Stop failed: No.');
  });

  it('do not repeat what is said of the connection', async () => {
    const { root, source, text, show } = shown();
    const message = 'No master runs in /home.';
    const remedy = 'Start one here.';
    source.answer = () =>
      Promise.reject(new RequestError(message, 503, 'none', remedy));
    buttonOf(root, 'Pause').click();
    await frame();
    const whole = `Pause failed: ${message} ${remedy}`;
    expect(text('.det-header [role=alert]')).toBe(whole);
    const lost = { kind: 'lost', since: 0, state: 'none', message } as const;
    await show({ connection: { ...lost, remedy: 'Wait.' } });
    expect(text('.det-header [role=alert]')).toBe(`Pause failed: ${remedy}`);
    await show({ connection: { ...lost, remedy } });
    expect(text('.det-header [role=alert]')).toBe('Pause failed.');
    await show({ connection: { kind: 'live' } });
    expect(text('.det-header [role=alert]')).toBe('');
  });

  it('keep the focus at what can be done next', async () => {
    const { root, source, show } = shown();
    let answer: () => void = () => undefined;
    source.act = () => new Promise(resolve => (answer = resolve));
    const pause = buttonOf(root, 'Pause');
    pause.focus();
    pause.click();
    pause.blur(); // as browsers do with what is disabled
    answer();
    await frame();
    expect(document.activeElement).toBe(pause);
    await show({ experiment: detail({ state: 'PAUSED' }) });
    expect(document.activeElement).toBe(buttonOf(root, 'Resume'));
    const other = document.body.appendChild(document.createElement('button'));
    other.focus();
    await show({ experiment: detail({ state: 'ACTIVE' }) });
    expect(document.activeElement).toBe(other);
    other.remove();
  });

  it('stop only after a question, which begins with the harmless answer', async () => {
    const { root, source, text } = shown();
    buttonOf(root, 'Stop').click();
    expect(source.acts).toEqual([]);
    expect(text('.det-question span')).toBe(TEXTS.confirmStop);
    expect(
      root.querySelector('.det-question')?.getAttribute('aria-label')
    ).toBe(TEXTS.confirmStop);
    expect(document.activeElement).toBe(buttonOf(root, 'Keep running'));
    buttonOf(root, 'Keep running').click();
    await frame();
    expect([text('.det-question'), source.acts]).toEqual(['', []]);
    expect(document.activeElement).toBe(buttonOf(root, 'Stop'));
    buttonOf(root, 'Stop').click();
    buttonOf(root, 'Stop it').click();
    await frame();
    expect(source.acts).toEqual(['stop']);
  });

  it('offer Kill while what was stopped has not ended, after a question too', async () => {
    const { root, source, text } = shown({
      experiment: detail({ state: 'STOPPING_CANCELED' })
    });
    buttonOf(root, 'Kill').click();
    expect(text('.det-question span')).toBe(TEXTS.confirmKill);
    expect(document.activeElement).toBe(buttonOf(root, 'Let it stop'));
    buttonOf(root, 'Kill it').click();
    await frame();
    expect(source.acts).toEqual(['kill']);
  });

  it('take Escape for no', async () => {
    const { root, source } = shown();
    buttonOf(root, 'Stop').click();
    const press = (key: string) =>
      document.activeElement?.dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true })
      );
    press('a');
    expect(buttonOf(root, 'Stop it').isConnected).toBe(true);
    press('Escape');
    await frame();
    expect(() => buttonOf(root, 'Stop it')).toThrow();
    expect(source.acts).toEqual([]);
  });

  it('take the question away when the experiment ends by itself', async () => {
    const { root, show, text } = shown();
    buttonOf(root, 'Stop').click();
    await show({ experiment: detail({ state: 'COMPLETED' }) });
    expect(text('.det-question')).toBe('');
  });

  it('ask in the way of the page, where it has its own', async () => {
    const confirm = vi.fn(() => Promise.resolve(false));
    const { root, source } = shown({}, { confirm });
    buttonOf(root, 'Stop').click();
    await frame();
    confirm.mockResolvedValue(true);
    buttonOf(root, 'Stop').click();
    await frame();
    expect(confirm.mock.calls).toEqual([
      [TEXTS.confirmStop, 'Stop'],
      [TEXTS.confirmStop, 'Stop']
    ]);
    expect(source.acts).toEqual(['stop']);
  });
});
