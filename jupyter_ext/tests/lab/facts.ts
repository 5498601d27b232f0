/** Experiments, runs and dialogs for the tests, complete as the server sends them. */
import type { ListView } from '../../src/shared/listFeed';
import type {
  Experiment,
  MasterStatus,
  UserErrorInfo
} from '../../src/shared/model';
import type { NotebookRun } from '../../src/lab/notebookRuns';
import {
  type Choice,
  type DialogEvent,
  type DialogModel,
  next,
  type NotebookFacts,
  opened
} from '../../src/lab/submission/dialogModel';

export const NOW = Date.parse('2026-11-20T12:00:00Z');

export function experiment(change: Partial<Experiment> = {}): Experiment {
  return {
    id: 7,
    name: 'digits',
    state: 'ACTIVE',
    config: {},
    bundle_id: null,
    framework: 'keras',
    metric: 'val_accuracy',
    smaller_is_better: false,
    progress: 0.456,
    test: false,
    archived: false,
    description: '',
    labels: [],
    project: '',
    forked_from: null,
    trials: 1,
    notice: '',
    failed_trials: 0,
    best_validation: 0.98713,
    error: null,
    created: '2026-11-20T11:50:00Z',
    started: '2026-11-20T11:51:00Z',
    seconds_left: 125,
    waits_for: '',
    validates: true,
    ended: null,
    in_kernel: false,
    ...change
  };
}

export function userError(change: Partial<UserErrorInfo> = {}): UserErrorInfo {
  return {
    type: 'ValueError',
    message: 'bad shape',
    traceback: 'Cell [5], line 3\n    model.fit(x)\nValueError: bad shape\n',
    cell: 5,
    prompts: true,
    file: null,
    line: 3,
    batch: 0,
    ...change
  };
}

export function status(change: Partial<MasterStatus> = {}): MasterStatus {
  return {
    state: 'running',
    message: 'The master runs.',
    remedy: '',
    version: '0.1.0',
    protocol: 1,
    master: null,
    can_start: false,
    ...change
  };
}

export function listView(change: Partial<ListView> = {}): ListView {
  return {
    status: status(),
    experiments: [],
    connection: { kind: 'live' },
    ...change
  };
}

export function notebookRun(change: Partial<NotebookRun> = {}): NotebookRun {
  return {
    id: 3,
    path: '/home/ada/train.ipynb',
    state: 'RUNNING',
    cell: 5,
    cells: 12,
    error: '',
    notes: [],
    experiments: ['7'],
    started: NOW / 1000 - 60,
    ended: 0,
    ...change
  };
}

export const NOTEBOOK: NotebookFacts = {
  name: 'train.ipynb',
  kernel: 'Python 3',
  cells: 6,
  first: null
};

/** The dialog after what happened in it. */
export function after(...events: DialogEvent[]): DialogModel {
  return events.reduce(next, opened(NOTEBOOK));
}

export function chosen(choice: Partial<Choice>): DialogEvent {
  return { type: 'chosen', choice };
}
