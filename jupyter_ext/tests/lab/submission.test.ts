import { describe, expect, it, vi } from 'vitest';

import {
  type ControllerOptions,
  SubmitController
} from '../../src/lab/submission/controller';
import {
  acceptLabel,
  blockedText,
  canSubmit,
  type DialogModel,
  next,
  opened,
  slotsProblem,
  waitingText
} from '../../src/lab/submission/dialogModel';
import type {
  DocumentBody,
  Inspection
} from '../../src/lab/submission/inspection';
import { refusalOf } from '../../src/lab/submission/refusals';
import { remarks } from '../../src/lab/submission/summary';
import { RequestError, type Transport } from '../../src/shared/transport';
import { after, inspected, inspection } from './facts';
import { ScriptedTransport } from '../shared/scriptedTransport';

describe('the dialog', () => {
  it('waits in words, and cannot be accepted before it knows what would be sent', () => {
    const model = opened();
    expect(waitingText(model)).toContain('Reading the notebook');
    expect(canSubmit(model)).toBe(false);
    expect(next(model, { type: 'submitted' })).toBe(model);
  });

  it('can be accepted once the notebook is read', () => {
    const model = after(inspected());
    expect([model.phase, canSubmit(model), waitingText(model)]).toEqual([
      'ready',
      true,
      ''
    ]);
    expect(acceptLabel(model)).toBe('Submit');
  });

  it('is blocked by what the notebook has wrong', () => {
    const model = after(
      inspected({
        problems: [
          { where: 'cell 3', what: 'uses lock', remedy: 'Make it there.' }
        ]
      })
    );
    expect([model.phase, canSubmit(model)]).toEqual(['blocked', false]);
    expect(blockedText(model.choice.place)).toContain('cannot be sent');
  });

  it('may still run in the kernel what cannot be sent', () => {
    const problems = [{ where: 'cell 3', what: 'holds a secret', remedy: '' }];
    const blocked = after(inspected({ problems }));
    expect(remarks(blocked)).toEqual([]);
    const here = next(blocked, { type: 'chosen', choice: { place: 'here' } });
    expect(canSubmit(here)).toBe(true);
    expect(blockedText(here.choice.place)).toContain('kernel may run it');
  });

  it.each([
    [3, 'The master has 2 slots: choose at most 2.'],
    [0, ''],
    [-1, 'Enter a whole number of slots; 0 for work that needs none.'],
    [1.5, 'Enter a whole number of slots; 0 for work that needs none.'],
    [Number.NaN, 'Enter a whole number of slots; 0 for work that needs none.'],
    [2, '']
  ])('says of %d slots of 2: %s', (slots, problem) => {
    const model = after(
      inspected(),
      { type: 'slots-known', slots: 2 },
      { type: 'chosen', choice: { slots } }
    );
    expect(slotsProblem(model)).toBe(problem);
    expect(canSubmit(model)).toBe(problem === '');
  });

  it('takes any number of slots while no master is known', () => {
    const model = after(inspected(), { type: 'chosen', choice: { slots: 64 } });
    expect(canSubmit(model)).toBe(true);
  });

  it('asks for no slots in the kernel', () => {
    const model = after(
      inspected(),
      { type: 'slots-known', slots: 1 },
      { type: 'chosen', choice: { place: 'here' } }
    );
    expect([slotsProblem(model), acceptLabel(model)]).toEqual(['', 'Run here']);
  });

  it('begins with the test that the notebook says', () => {
    expect(
      after(inspected({ written: { place: 'here', test: true } })).choice.test
    ).toBe(true);
  });

  it('says what it does while it sends', () => {
    expect(waitingText(after(inspected(), { type: 'submitted' }))).toContain(
      'Running the cells'
    );
  });

  it('can begin again after a refusal', () => {
    const refused = after({
      type: 'refused',
      refusal: { message: 'No.', remedy: '', problems: [], canRetry: true }
    });
    expect(refused.phase).toBe('refused');
    expect(next(refused, { type: 'retried' })).toMatchObject({
      phase: 'inspecting',
      refusal: null
    });
  });
});

describe('a refusal', () => {
  it('has the words of the server', () => {
    const problems = [
      { where: 'cell 3', what: 'uses lock', remedy: 'Make it there.' }
    ];
    const error = new RequestError(
      'Cannot be sent.',
      400,
      'refused',
      'Mend it.',
      problems
    );
    const words = { message: 'Cannot be sent.', remedy: 'Mend it.', problems };
    expect(refusalOf(error)).toEqual({ ...words, canRetry: false });
    expect(refusalOf(REFUSED).canRetry).toBe(true);
  });

  it('is never empty', () => {
    expect(refusalOf(new Error('broken')).message).toBe('broken');
  });
});

interface Request {
  path: string;
  body: DocumentBody;
}

/** A server whose answers are given one by one; an `Error` refuses. */
const SLOT = { device: 'cuda', name: 'Fake', memory: 8e9 };

function controller(...answers: unknown[]) {
  const requests: Request[] = [];
  const models: DialogModel[] = [];
  const ran: Inspection['here'][] = [];
  const transport = {
    api: new ScriptedTransport({ 'master/master': { slots: [SLOT, SLOT] } })
      .api,
    post: (path: string, body: DocumentBody, signal: AbortSignal) => {
      requests.push({ path, body });
      const answer = answers.shift();
      if (answer === 'never') {
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () =>
            reject(new Error('called off'))
          );
        });
      }
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve(answer);
    }
  } as unknown as Transport;
  let keys = 0;
  const options: ControllerOptions = {
    transport,
    document: { path: 'demo.ipynb', kernelspec: 'python3', cells: [] },
    newKey: () => `key-${++keys}`,
    onModel: model => models.push(model),
    runHere: here => Promise.resolve(void ran.push(here))
  };
  return { controller: new SubmitController(options), requests, models, ran };
}

const SUBMITTED = { ok: true, experiment: { id: 9, name: 'digits' } };
const REFUSED = new RequestError('Not yet.', 503, 'starting', 'Wait.');

describe('submitting', () => {
  it('inspects, then sends the same document with what was chosen', async () => {
    const {
      controller: dialog,
      requests,
      models
    } = controller(inspection(), SUBMITTED);
    await dialog.begin();
    expect(dialog.model).toMatchObject({
      phase: 'ready',
      slotsOffered: 2,
      slotKinds: 'Fake (8.0 GB)'
    });
    dialog.take({ type: 'chosen', choice: { slots: 1, test: true } });
    expect(await dialog.submit()).toEqual({
      kind: 'submitted',
      experiment: SUBMITTED.experiment
    });
    expect(requests.map(({ path }) => path)).toEqual([
      'document/inspect',
      'document/submit'
    ]);
    expect(requests[0]?.body).toMatchObject({
      path: 'demo.ipynb',
      slots: null,
      test: false
    });
    expect(requests[1]?.body).toMatchObject({
      slots: 1,
      test: true,
      place: 'cluster'
    });
    expect(models.map(({ phase }) => phase)).toContain('submitting');
    expect(dialog.model.phase).toBe('done');
  });

  it('repeats a refused request with the same key, so that it submits once', async () => {
    const { controller: dialog, requests } = controller(
      inspection(),
      REFUSED,
      inspection(),
      SUBMITTED
    );
    await dialog.begin();
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model.refusal?.message).toBe('Not yet.');
    const ready = dialog.begin();
    await ready;
    expect(await dialog.submit()).toMatchObject({ kind: 'submitted' });
    const keys = requests
      .filter(({ path }) => path === 'document/submit')
      .map(({ body }) => body.idempotency_key);
    expect(keys[0]).toBe(keys[1]);
  });

  it('takes another key for another choice: it is another experiment', async () => {
    const { controller: dialog, requests } = controller(
      inspection(),
      SUBMITTED
    );
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { slots: 1 } });
    await dialog.submit();
    expect(requests[0]?.body.idempotency_key).not.toBe(
      requests[1]?.body.idempotency_key
    );
  });

  it('sends nothing while something is wrong', async () => {
    const problems = [{ where: 'cell 1', what: 'fails', remedy: '' }];
    const { controller: dialog, requests } = controller(
      inspection({ problems })
    );
    await dialog.begin();
    expect(await dialog.submit()).toBeNull();
    expect(requests).toHaveLength(1);
  });

  it('reads the notebook again when another call is chosen', async () => {
    const { controller: dialog, requests } = controller(
      inspection(),
      inspection({ chosen: 0 })
    );
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { slots: 2 } });
    dialog.take({ type: 'chosen', choice: { call: 0 } });
    expect([dialog.model.phase, canSubmit(dialog.model)]).toEqual([
      'inspecting',
      false
    ]);
    await vi.waitFor(() => expect(dialog.model.phase).toBe('ready'));
    expect(
      requests.slice(1).map(({ body }) => [body.call, body.slots])
    ).toEqual([[0, 2]]);
  });

  it('runs in the kernel instead, if that is chosen', async () => {
    const { controller: dialog, requests, ran } = controller(inspection());
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { place: 'here' } });
    expect(await dialog.submit()).toEqual({ kind: 'here' });
    expect(ran).toEqual([inspection().here]);
    expect(requests).toHaveLength(1);
  });

  it('prepares the kernel for a test, if that was chosen after the notebook was read', async () => {
    const here = { before: 'run(test=True)', cells: ['c1'], after: 'end()' };
    const {
      controller: dialog,
      requests,
      ran
    } = controller(inspection(), inspection({ here }));
    await dialog.begin();
    dialog.take({ type: 'chosen', choice: { place: 'here', test: true } });
    expect(await dialog.submit()).toEqual({ kind: 'here' });
    expect(requests.map(({ body }) => body.test)).toEqual([false, true]);
    expect(ran).toEqual([here]);
  });

  it('shows what the server refuses, and inspects again on demand', async () => {
    const { controller: dialog, requests } = controller(REFUSED, inspection());
    await dialog.begin();
    expect(dialog.model).toMatchObject({
      phase: 'refused',
      refusal: { remedy: 'Wait.' }
    });
    dialog.take({ type: 'retried' });
    expect(dialog.model.phase).toBe('inspecting');
    expect(requests).toHaveLength(2);
  });

  it('calls off what is under way when the user goes away, without a word', async () => {
    const { controller: dialog, models } = controller('never');
    const begun = dialog.begin();
    await Promise.resolve();
    dialog.abort();
    await begun;
    expect(models.every(({ phase }) => phase === 'inspecting')).toBe(true);
  });
});
