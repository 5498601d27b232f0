import { describe, expect, it } from 'vitest';

import {
  type ControllerOptions,
  refusalOf,
  SubmitController
} from '../../src/lab/submission/controller';
import {
  canSubmit,
  type DialogModel,
  lineOf,
  next,
  opened,
  remarksOf,
  slotsProblem
} from '../../src/lab/submission/dialogModel';
import { RequestError } from '../../src/shared/transport';
import { AWAY, held, ScriptedTransport } from '../shared/scriptedTransport';
import { after, chosen, NOTEBOOK, notebookRun, status } from './facts';

const MASTER = status({
  master: { url: 'http://127.0.0.1:8123', version: '0.1.0', protocol: 1 }
});
const KNOWN = { type: 'master-known', master: MASTER } as const;

describe('the line', () => {
  it('says notebook, kernel, master and slots', () => {
    expect(lineOf(after(KNOWN))).toBe(
      'Runs 6 cells of train.ipynb in a fresh kernel, Python 3; its training calls run as written, ' +
        'with the master http://127.0.0.1:8123, slots as configured.'
    );
    expect(
      lineOf(after(KNOWN, chosen({ place: 'cluster', slots: 2, test: true })))
    ).toContain(
      'its training calls go to the master http://127.0.0.1:8123, 2 slots for each trial, one minimal loop each.'
    );
    expect(lineOf(after(KNOWN, chosen({ place: 'local' })))).toContain(
      '; its training calls train in that kernel.'
    );
  });

  it('says that a master is started where none runs, and does without an answer', () => {
    const none = { type: 'master-known', master: status({ state: 'none' }) };
    expect(lineOf(after(none as typeof KNOWN))).toContain(
      'with a master that is started on this machine'
    );
    expect(lineOf(after())).toContain('with the master, slots as configured');
    const socket = { url: 'unix:/a.sock', version: '0.1.0', protocol: 1 };
    const here = { ...KNOWN, master: { ...MASTER, master: socket } };
    expect(lineOf(after(here))).toContain('with the master of this machine, ');
  });

  it.each([
    [1, 'Runs 6 cells in the open kernel.'],
    [6, 'Runs cell 6 in the open kernel: from the first'],
    [3, 'Runs cells 3 to 6 in the open kernel: from the first'],
    [0, 'Every cell has run in the open kernel as it stands']
  ])('says what the open kernel runs from cell %d', (first, text) => {
    const model = next(
      opened({ ...NOTEBOOK, first }),
      chosen({ place: 'kernel' })
    );
    expect(lineOf(model)).toContain(text);
    expect(canSubmit(model)).toBe(first !== 0);
  });
});

describe('the dialog', () => {
  it('can be accepted as it opens', () => {
    expect(canSubmit(after())).toBe(true);
    const sent = after({ type: 'submitted' });
    expect([sent.phase, canSubmit(sent)]).toEqual(['submitting', false]);
    expect(next(sent, { type: 'submitted' })).toBe(sent);
  });

  it.each([
    [3, 'The master has 2 slots: choose at most 2.'],
    [0, 'Enter a whole number of slots, 1 or more.'],
    [1.5, 'Enter a whole number of slots, 1 or more.'],
    [Number.NaN, 'Enter a whole number of slots, 1 or more.'],
    [2, '']
  ])('says of %d slots of 2: %s', (slots, problem) => {
    const offered = { type: 'slots-known', slots: 2, kinds: '' } as const;
    const model = after(offered, chosen({ slots }));
    expect(slotsProblem(model)).toBe(problem);
    expect(canSubmit(model)).toBe(problem === '');
    expect(canSubmit(next(model, chosen({ place: 'kernel' })))).toBe(true);
  });

  it('takes any number of slots while no master is known', () => {
    expect(canSubmit(after(chosen({ slots: 64 })))).toBe(true);
  });

  it('says that a master cannot be used, unless it is not', () => {
    const away = status({
      state: 'unreachable',
      message: 'No.',
      remedy: 'So.'
    });
    const model = after({ type: 'master-known', master: away });
    expect(remarksOf(model)).toEqual(['No. So.']);
    expect(remarksOf(next(model, chosen({ place: 'local' })))).toEqual([]);
    expect(remarksOf(after(KNOWN))).toEqual([]);
  });
});

const RUNS = 'notebook-runs';
const DESCRIBE = 'notebook-runs/describe';
const BAD = new RequestError('Kernel gone.', 400, 'refused', '', [
  { where: 'kernel', what: 'is not installed', remedy: '' }
]);

function dialogWith(answers: Record<string, unknown> = {}) {
  const transport = new ScriptedTransport({
    status: MASTER,
    'master/master': { slots: [{}, {}] },
    [DESCRIBE]: { parameters: { lr: '0.1' }, running: null },
    [RUNS]: notebookRun(),
    ...answers
  });
  const models: DialogModel[] = [];
  const did: string[] = [];
  let keys = 0;
  const options: ControllerOptions = {
    transport,
    facts: { ...NOTEBOOK, first: 2 },
    notebook: { path: 'deep/train.ipynb', kernel: 'python3' },
    parameters: 'lr = 0.1',
    newKey: () => `key-${++keys}`,
    onModel: model => models.push(model),
    save: () => Promise.resolve(void did.push('saved')),
    runInKernel: () => Promise.resolve(void did.push('ran'))
  };
  const dialog = new SubmitController(options);
  const sent = () =>
    transport.bodies.filter(body => 'key' in (body as object)) as Array<
      Record<string, unknown>
    >;
  return { dialog, transport, models, did, options, sent };
}

describe('submitting', () => {
  it('saves the notebook, and begins a run with what was chosen', async () => {
    const { dialog, did, sent, transport } = dialogWith();
    await dialog.begin();
    expect(dialog.model).toMatchObject({
      description: { parameters: { lr: '0.1' } },
      slotsOffered: 2,
      master: MASTER
    });
    expect(transport.bodies).toEqual([
      { path: 'deep/train.ipynb', kernel: 'python3', source: 'lr = 0.1' }
    ]);
    dialog.take(chosen({ slots: 1, test: true, parameters: { lr: '0.5' } }));
    expect(await dialog.submit()).toEqual({ kind: 'run', run: notebookRun() });
    expect(did).toEqual(['saved']);
    expect(sent()).toEqual([
      {
        path: 'deep/train.ipynb',
        kernel: 'python3',
        place: '',
        slots: 1,
        test: true,
        beside: false,
        parameters: { lr: '0.5' },
        key: 'key-2'
      }
    ]);
  });

  it('needs no answer to what the dialog asks', async () => {
    const never = new Promise(() => undefined);
    const { dialog } = dialogWith({
      status: never,
      'master/master': never,
      [DESCRIBE]: never
    });
    void dialog.begin();
    expect(await dialog.submit()).toMatchObject({ kind: 'run' });
  });

  it('begins one run by a second press while it is sent', async () => {
    const answer = held<unknown>();
    const { dialog, sent } = dialogWith({ [RUNS]: answer.promise });
    const [first, second] = [dialog.submit(), dialog.submit()];
    expect(await second).toBeNull();
    answer.release(notebookRun());
    expect(await first).toMatchObject({ kind: 'run' });
    expect(sent()).toHaveLength(1);
  });

  it('repeats what nobody answered with the same key, and takes another for another choice', async () => {
    const { dialog, sent, transport } = dialogWith({ [RUNS]: AWAY });
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model.refusal).toEqual(['The master does not answer. Wait.']);
    expect(await dialog.submit()).toBeNull();
    dialog.take(chosen({ slots: 1 }));
    expect(dialog.model.refusal).toEqual([]);
    transport.answers.set(RUNS, notebookRun());
    expect(await dialog.submit()).toMatchObject({ kind: 'run' });
    const keys = sent().map(({ key }) => key);
    expect(keys[0]).toBe(keys[1]);
    expect(keys[1]).not.toBe(keys[2]);
  });

  it('does not send a notebook that cannot be saved', async () => {
    const { dialog, sent, options } = dialogWith();
    options.save = () => Promise.reject(new Error('The disk is full.'));
    expect(await dialog.submit()).toBeNull();
    expect(dialog.model.refusal).toEqual(['The disk is full.']);
    expect(sent()).toEqual([]);
  });

  it('runs in the open kernel instead, and saves and sends nothing', async () => {
    const { dialog, did, sent } = dialogWith();
    dialog.take(chosen({ place: 'kernel' }));
    expect(await dialog.submit()).toEqual({ kind: 'kernel' });
    expect([did, sent()]).toEqual([['ran'], []]);
  });

  it('says at once what the server knows to be wrong', async () => {
    const { dialog } = dialogWith({ [DESCRIBE]: BAD });
    await dialog.begin();
    expect(dialog.model.refusal).toEqual([
      'Kernel gone.',
      'kernel is not installed'
    ]);
  });

  it('sends and says nothing once the user has gone away', async () => {
    const saving = held<void>();
    const { dialog, models, transport, options } = dialogWith();
    options.save = () => saving.promise;
    const submitted = dialog.submit();
    dialog.abort();
    const told = models.length;
    saving.release();
    expect(await submitted).toBeNull();
    expect(transport.requests).toEqual([]);
    expect(models).toHaveLength(told);
  });
});

it('an error has words, whatever it is', () => {
  expect(refusalOf('text')).toEqual(['text']);
  expect(refusalOf(new Error('broken'))).toEqual(['broken']);
});
