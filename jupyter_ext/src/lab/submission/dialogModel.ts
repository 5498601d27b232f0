/** The submit dialog as data: what it knows, what was chosen, and the line that says what will happen. No DOM here. */
import { formatCount } from '../../shared/format';
import type { MasterStatus } from '../../shared/model';
import { cellText, type NotebookRun } from '../notebookRuns';

/** Where the training calls train; `kernel`: not in the background, but by cells in the kernel that is open. */
export type Place = '' | 'cluster' | 'local' | 'kernel';

/** What the user chose. */
export interface Choice {
  place: Place;
  /** Null: as the cells say. */
  slots: number | null;
  test: boolean;
  /** Whether the executed notebook is saved beside the notebook. */
  beside: boolean;
  /** What was typed in place of values of the cell tagged `parameters`. */
  parameters: Readonly<Record<string, string>>;
}

/** The notebook as the page has it. */
export interface NotebookFacts {
  name: string;
  /** What its kernel is called. */
  kernel: string;
  /** Code cells that are not empty. */
  cells: number;
  /** The first of them that the open kernel has not run as it stands, from 1; 0: it has run all; null: none is open. */
  first: number | null;
}

/** What the server says of it. */
export interface Description {
  /** The text of each value by its name. */
  parameters: Readonly<Record<string, string>>;
  /** The run of it that goes on. */
  running: NotebookRun | null;
}

/** State of the dialog; never changed in place. */
export interface DialogModel {
  phase: 'ready' | 'submitting' | 'done';
  choice: Choice;
  facts: NotebookFacts;
  /** Null until the server has answered; nothing waits for that. */
  description: Description | null;
  master: MasterStatus | null;
  /** How many slots the master has; null while that is not known. */
  slotsOffered: number | null;
  /** What its slots are: `NVIDIA H100 (80.0 GB)`. */
  slotKinds: string;
  /** What was refused, a paragraph each. */
  refusal: readonly string[];
}

/** What can happen to the dialog. */
export type DialogEvent =
  | { type: 'described'; description: Description }
  | { type: 'master-known'; master: MasterStatus }
  | { type: 'slots-known'; slots: number; kinds: string }
  | { type: 'refused'; refusal: readonly string[] }
  | { type: 'chosen'; choice: Partial<Choice> }
  | { type: 'submitted' }
  | { type: 'accepted' };

/** The dialog as it opens. */
export function opened(facts: NotebookFacts): DialogModel {
  return {
    phase: 'ready',
    choice: {
      place: '',
      slots: null,
      test: false,
      beside: false,
      parameters: {}
    },
    facts,
    description: null,
    master: null,
    slotsOffered: null,
    slotKinds: '',
    refusal: []
  };
}

/** The dialog after an event. */
export function next(model: DialogModel, event: DialogEvent): DialogModel {
  switch (event.type) {
    case 'described':
      return { ...model, description: event.description };
    case 'master-known':
      return { ...model, master: event.master };
    case 'slots-known':
      return { ...model, slotsOffered: event.slots, slotKinds: event.kinds };
    case 'refused':
      return { ...model, phase: 'ready', refusal: event.refusal };
    case 'chosen':
      return {
        ...model,
        choice: { ...model.choice, ...event.choice },
        refusal: []
      };
    case 'submitted':
      return canSubmit(model)
        ? { ...model, phase: 'submitting', refusal: [] }
        : model;
    case 'accepted':
      return { ...model, phase: 'done' };
  }
}

/** What is wrong with the number of slots, in words; empty if nothing is. */
export function slotsProblem({ choice, slotsOffered }: DialogModel): string {
  const { slots, place } = choice;
  if (slots === null || place === 'kernel') {
    return '';
  }
  if (!Number.isInteger(slots) || slots < 1) {
    return 'Enter a whole number of slots, 1 or more.';
  }
  return slotsOffered !== null && place !== 'local' && slots > slotsOffered
    ? `The master has ${counted(slotsOffered, 'slot')}: choose at most ${slotsOffered}.`
    : '';
}

/** Whether it can be accepted as it stands. */
export function canSubmit(model: DialogModel): boolean {
  const { phase, choice, facts } = model;
  return (
    phase === 'ready' &&
    slotsProblem(model) === '' &&
    !(choice.place === 'kernel' && facts.first === 0)
  );
}

/** What will happen, in one line. */
export function lineOf(model: DialogModel): string {
  const { choice, facts } = model;
  const { name, kernel, cells, first } = facts;
  if (choice.place === 'kernel') {
    return kernelLine(first ?? 1, cells);
  }
  const trains = {
    '': `its training calls run as written, with ${masterText(model)}, ${slotsText(choice)}`,
    cluster: `its training calls go to ${masterText(model)}, ${slotsText(choice)}`,
    local: 'its training calls train in that kernel'
  }[choice.place];
  const test = choice.test ? ', one minimal loop each' : '';
  return `Runs ${counted(cells, 'cell')} of ${name} in a fresh kernel, ${kernel}; ${trains}${test}.`;
}

function kernelLine(first: number, cells: number): string {
  if (first === 0) {
    return 'Every cell has run in the open kernel as it stands: there is nothing to run.';
  }
  const which =
    first === cells ? `cell ${first}` : `cells ${first} to ${cells}`;
  return first === 1
    ? `Runs ${counted(cells, 'cell')} in the open kernel.`
    : `Runs ${which} in the open kernel: from the first that has changed or has not run yet.`;
}

function masterText({ master }: DialogModel): string {
  if (master?.master) {
    const { url } = master.master;
    return url.startsWith('unix:')
      ? 'the master of this machine'
      : `the master ${url}`;
  }
  return master?.state === 'none'
    ? 'a master that is started on this machine'
    : 'the master';
}

function slotsText({ slots }: Choice): string {
  return slots === null
    ? 'slots as configured'
    : `${counted(slots, 'slot')} for each trial`;
}

/** What else should be known before: of a run that goes on, and of a master that cannot be used. */
export function remarksOf({ choice, description, master }: DialogModel) {
  const running = description?.running;
  const away =
    choice.place !== 'local' &&
    master !== null &&
    !['running', 'none', 'starting'].includes(master.state);
  return [
    ...(running
      ? [
          `Run ${running.id} of this notebook goes on (${cellText(running)}). Another one begins beside it.`
        ]
      : []),
    ...(away ? [`${master.message} ${master.remedy}`.trim()] : [])
  ];
}

/** `1 slot`, `3 slots`. */
export function counted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}
