/** The view of an experiment in a page, fed by the test; whatever is left of it after a test is a failure. */
import { observing, textsOf } from './browserParts';
import { afterEach, beforeEach, expect, vi } from 'vitest';

import {
  ExperimentElement,
  type ExperimentElementOptions
} from '../../src/shared/experimentView';
import type { ExperimentSource, ExperimentView } from '../../src/shared/model';
import { FakeSource } from './fakeSource';

const elements: ExperimentElement[] = [];

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  elements.splice(0).forEach(element => element.dispose());
  vi.useRealTimers();
  expect(observing.size).toBe(0);
  document.body.replaceChildren();
});

/** Let a frame be drawn. */
export const frame = () => vi.advanceTimersByTimeAsync(20);

/** Show a view; `change` is what it has besides a running experiment, `abilities` what its source can do. */
export function shown(
  change: Partial<ExperimentView> = {},
  options: ExperimentElementOptions = {},
  abilities: Partial<ExperimentSource> = {}
) {
  const source = Object.assign(new FakeSource(change), abilities);
  const element = new ExperimentElement(document.body, source, options);
  elements.push(element);
  const { root } = element;
  return {
    source,
    element,
    root,
    text: (selector: string) => textsOf(root, selector).join('|'),
    buttons: () =>
      [...root.querySelectorAll('button')].filter(
        each => !each.closest('[hidden]')
      ),
    show: async (next: Partial<ExperimentView>) => {
      source.show(next);
      await frame();
    }
  };
}
