/** What the submit dialog does when it is refused, or when its user goes away. */
import { describe, expect, it } from 'vitest';

import { SubmitController } from '../../src/lab/submission/controller';
import type { DialogModel } from '../../src/lab/submission/dialogModel';
import { LastingError, refusalOf } from '../../src/lab/submission/refusals';
import { RequestError } from '../../src/shared/transport';
import { held, ScriptedTransport } from '../shared/scriptedTransport';
import { inspection } from './facts';

const INSPECT = 'document/inspect';
const SUBMIT = 'document/submit';
const BAD = new RequestError(
  'The notebook fails.',
  400,
  'refused',
  'Mend cell 3.',
  [{ where: 'cell 3', what: 'uses a lock', remedy: 'Make it there.' }]
);
const AWAY = new RequestError(
  'The master does not answer.',
  503,
  'unreachable',
  'Wait.'
);

function dialogWith(answers: Record<string, unknown>) {
  const transport = new ScriptedTransport({
    'master/master': { slots: [{}, {}] },
    ...answers
  });
  const models: DialogModel[] = [];
  const ran: string[][] = [];
  const kernel = { answer: () => Promise.resolve() };
  let keys = 0;
  const dialog = new SubmitController({
    transport,
    document: { path: 'demo.ipynb', kernelspec: 'python3', cells: [] },
    newKey: () => `key-${++keys}`,
    onModel: model => models.push(model),
    runHere: here => {
      ran.push(here.cells);
      return kernel.answer();
    }
  });
  return { dialog, transport, models, ran, kernel };
}

describe('a refusal', () => {
  it('of a notebook that is wrong can only be mended, not repeated', async () => {
    const { dialog } = dialogWith({ [INSPECT]: BAD });
    await dialog.begin();
    expect(dialog.model.phase).toBe('refused');
    expect(dialog.model.refusal).toEqual({
      message: 'The notebook fails.',
      remedy: 'Mend cell 3.',
      problems: BAD.problems,
      canRetry: false
    });
    expect(await dialog.submit()).toBeNull();
  });

  it('of sending keeps what was read, and another choice may be accepted', async () => {
    const { dialog, transport } = dialogWith({
      [INSPECT]: inspection(),
      [SUBMIT]: BAD
    });
    await dialog.begin();
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model).toMatchObject({
      phase: 'refused',
      inspection: inspection()
    });
    expect(await dialog.submit()).toBeNull();
    expect(
      transport.requests.filter(each => each.includes(SUBMIT))
    ).toHaveLength(1);
    dialog.take({ type: 'chosen', choice: { slots: 1 } });
    expect(dialog.model).toMatchObject({ phase: 'ready', refusal: null });
    transport.answers.set(SUBMIT, {
      ok: true,
      experiment: { id: 9, name: 'x' }
    });
    expect(await dialog.submit()).toEqual({
      kind: 'submitted',
      experiment: { id: 9, name: 'x' }
    });
  });

  it('by a kernel that cannot be prepared is told, and sending is still possible', async () => {
    const { dialog, transport, kernel } = dialogWith({
      [INSPECT]: inspection()
    });
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { place: 'here' } });
    kernel.answer = () =>
      Promise.reject(new Error('The kernel could not be prepared.'));
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model.refusal).toMatchObject({
      message: 'The kernel could not be prepared.',
      canRetry: true
    });
    dialog.take({ type: 'chosen', choice: { place: 'cluster' } });
    transport.answers.set(SUBMIT, {
      ok: true,
      experiment: { id: 9, name: 'x' }
    });
    expect(await dialog.submit()).toMatchObject({ kind: 'submitted' });
  });

  it('for want of a kernel is not tried again, but another choice may be accepted', async () => {
    const { dialog, kernel } = dialogWith({ [INSPECT]: inspection() });
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { place: 'here' } });
    kernel.answer = () =>
      Promise.reject(new LastingError('No kernel.', 'Close this dialog.'));
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model.refusal).toMatchObject({
      message: 'No kernel.',
      remedy: 'Close this dialog.',
      canRetry: false
    });
    dialog.take({ type: 'chosen', choice: { place: 'cluster' } });
    expect(dialog.model).toMatchObject({ phase: 'ready', refusal: null });
  });

  it('does not open a notebook with problems by another choice', async () => {
    const problems = [{ where: 'cell 1', what: 'holds a secret', remedy: '' }];
    const { dialog, kernel } = dialogWith({
      [INSPECT]: inspection({ problems })
    });
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { place: 'here' } });
    kernel.answer = () => Promise.reject(new Error('No kernel.'));
    await dialog.submit();
    dialog.take({ type: 'chosen', choice: { place: 'cluster' } });
    expect(dialog.model.phase).toBe('blocked');
    expect(await dialog.submit()).toBeNull();
  });

  it('that passes is tried again on demand, until it is accepted', async () => {
    const { dialog, transport } = dialogWith({ [INSPECT]: AWAY });
    await dialog.begin();
    expect(dialog.model.refusal?.canRetry).toBe(true);
    const answer = held<unknown>();
    transport.answers.set(INSPECT, answer.promise);
    dialog.take({ type: 'retried' });
    expect(dialog.model).toMatchObject({ phase: 'inspecting', refusal: null });
    answer.release(inspection());
    await answer.promise;
    await Promise.resolve();
    await Promise.resolve();
    expect(dialog.model.phase).toBe('ready');
  });

  it('to say how many slots there are leaves any number open', async () => {
    const { dialog } = dialogWith({
      [INSPECT]: inspection(),
      'master/master': AWAY
    });
    await dialog.begin();
    expect(dialog.model).toMatchObject({ phase: 'ready', slotsOffered: null });
  });

  it('of any kind has words', () => {
    const words = { message: 'text', remedy: '', problems: [], canRetry: true };
    expect(refusalOf('text')).toEqual(words);
    expect(refusalOf(undefined).message).toBe('undefined');
    expect(refusalOf(AWAY)).toMatchObject({
      message: AWAY.message,
      remedy: 'Wait.',
      canRetry: true
    });
  });
});

describe('a user who goes away', () => {
  it('while it is sent hears nothing of it any more', async () => {
    const { dialog, transport, models } = dialogWith({
      [INSPECT]: inspection()
    });
    await dialog.begin();
    const answer = held<unknown>();
    transport.answers.set(SUBMIT, answer.promise);
    const sent = dialog.submit();
    dialog.abort();
    const told = models.length;
    answer.release(AWAY);
    expect(await sent).toBeNull();
    expect(models).toHaveLength(told);
    expect(dialog.model.refusal).toBeNull();
  });

  it('before it begins causes no request', async () => {
    const { dialog, transport, models } = dialogWith({
      [INSPECT]: inspection()
    });
    dialog.abort();
    await dialog.begin();
    expect(transport.requests).toEqual([]);
    expect(models.map(({ phase }) => phase)).toEqual(['inspecting']);
  });
});

it('nothing is sent twice by a second press while it is sent', async () => {
  const { dialog, transport } = dialogWith({ [INSPECT]: inspection() });
  await dialog.begin();
  const answer = held<unknown>();
  transport.answers.set(SUBMIT, answer.promise);
  const [first, second] = [dialog.submit(), dialog.submit()];
  expect(await second).toBeNull();
  answer.release({ ok: true, experiment: { id: 9, name: 'x' } });
  expect(await first).toMatchObject({ kind: 'submitted' });
  expect(transport.requests.filter(each => each.includes(SUBMIT))).toHaveLength(
    1
  );
});
