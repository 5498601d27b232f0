// @vitest-environment jsdom
import { observing } from '../shared/browserParts';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ExperimentList } from '../../src/lab/panel/list';
import { ROW_HEIGHT } from '../../src/lab/panel/listModel';
import { rowOf } from '../../src/lab/panel/rows';
import { NASTY } from '../shared/examples';
import { experiment, NOW, userError } from './facts';

let list: ExperimentList;
const onOpen = vi.fn();

beforeEach(() => {
  onOpen.mockClear();
  list = new ExperimentList({ label: 'Experiments', onOpen });
  const height = 10 * ROW_HEIGHT;
  Object.defineProperty(list.element, 'clientHeight', { value: height });
  Object.defineProperty(list.element, 'scrollHeight', {
    value: 500 * ROW_HEIGHT
  });
  vi.spyOn(list.node, 'getBoundingClientRect').mockReturnValue(
    new DOMRect(0, 0, 250, height)
  );
  list.viewportNode.style.padding = '0'; // jsdom has no defaults of styles
  Widget.attach(list, document.body);
});
afterEach(() => {
  list.dispose();
  expect(observing.size).toBe(0);
  document.body.replaceChildren();
});

const row = (id: number, change = {}) =>
  rowOf(experiment({ id, name: `run ${id}`, ...change }), NOW);
const newestFirst = (count: number) =>
  Array.from({ length: count }, (_, at) => row(count - at));
const options = () => [
  ...list.element.querySelectorAll<HTMLElement>('[role=option]')
];
/** The rows are drawn with the next frame. */
async function drawn(): Promise<void> {
  MessageLoop.flush();
  await new Promise(requestAnimationFrame);
}
const active = () => list.element.querySelector('[aria-selected=true]');

function press(key: string, change: KeyboardEventInit = {}): boolean {
  const event = new KeyboardEvent('keydown', {
    key,
    cancelable: true,
    bubbles: true,
    ...change
  });
  return !list.element.dispatchEvent(event);
}

describe('the list', () => {
  it('is a list box that the keyboard reaches, with a name', () => {
    const { element } = list;
    expect([element.getAttribute('role'), element.tabIndex]).toEqual([
      'listbox',
      0
    ]);
    expect(element.getAttribute('aria-label')).toBe('Experiments');
    list.focus();
    expect(document.activeElement).toBe(element);
  });

  it('draws what is seen of 500 rows, in their order, and says how many there are', async () => {
    list.setRows(newestFirst(500));
    await drawn();
    expect(options().length).toBeLessThan(20);
    expect(options()[0]?.getAttribute('aria-setsize')).toBe('500');
    expect(options().map(each => each.getAttribute('aria-posinset'))).toEqual(
      options().map((_, at) => String(at + 1))
    );
    list.element.scrollTop = 100 * ROW_HEIGHT;
    list.element.dispatchEvent(new Event('scroll'));
    await drawn();
    expect(
      options().map(each => Number(each.getAttribute('aria-posinset')))
    ).toContain(101);
    expect(options().length).toBeLessThan(25);
  });

  it('moves by keys, opens by Enter and Space, and leaves other keys to the page', async () => {
    list.setRows(newestFirst(50));
    await drawn();
    expect(press('ArrowDown')).toBe(true);
    expect(list.activeId).toBe(49);
    expect(list.element.getAttribute('aria-activedescendant')).toBe(
      active()?.id
    );
    expect(press('End')).toBe(true);
    expect(list.activeId).toBe(1);
    expect(list.element.scrollTop).toBe(40 * ROW_HEIGHT);
    press('Home');
    press('PageDown');
    expect(list.activeId).toBe(41);
    expect([press('Enter'), press(' ')]).toEqual([true, true]);
    expect(onOpen.mock.calls).toEqual([[41], [41]]);
    expect([
      press('a'),
      press('Tab'),
      press('ArrowDown', { ctrlKey: true })
    ]).toEqual([false, false, false]);
    expect(list.activeId).toBe(41);
  });

  it('opens what is clicked, and only marks what is pointed at for a menu', async () => {
    list.setRows(newestFirst(5));
    await drawn();
    const third = options()[2]!;
    third.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true }));
    expect(list.activeId).toBe(3);
    expect(onOpen).not.toHaveBeenCalled();
    third.firstElementChild?.dispatchEvent(
      new MouseEvent('click', { bubbles: true })
    );
    expect(onOpen.mock.calls).toEqual([[3]]);
    list.element.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    expect(onOpen).toHaveBeenCalledTimes(1);
  });

  it('keeps the active experiment when a new one comes before it', async () => {
    list.setRows(newestFirst(5));
    await drawn();
    press('ArrowDown');
    const element = active();
    list.setRows(newestFirst(6));
    await drawn();
    expect(list.activeId).toBe(4);
    expect(active()).toBe(element);
    list.setRows([]);
    expect([list.activeId, press('Enter')]).toEqual([null, true]);
    expect(list.element.hasAttribute('aria-activedescendant')).toBe(false);
    expect(onOpen).not.toHaveBeenCalled();
  });

  it('shows names and errors as the text they are', async () => {
    const error = userError({ traceback: `${NASTY}\n` });
    list.setRows([
      row(1, { name: NASTY, state: 'ERROR', error, metric: NASTY })
    ]);
    await drawn();
    expect(list.element.querySelector('img, script')).toBeNull();
    expect(list.element.textContent).toContain(NASTY);
    expect(options()[0]?.getAttribute('aria-label')).toContain(NASTY);
  });
});
