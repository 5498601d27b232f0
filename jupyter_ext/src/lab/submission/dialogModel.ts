/** The submit dialog as data: what it knows, what was chosen, and what follows from an event. No DOM here. */
import { formatCount } from '../../shared/format';
import type { Inspection, Place } from './inspection';
import type { Refusal } from './refusals';

/** What the user chose. `slots` is null where the configuration's own number holds. */
export interface Choice {
  place: Place;
  /** Which training call, from 0; null as long as the last one stands. */
  call: number | null;
  slots: number | null;
  test: boolean;
}

/** What the dialog is about to do or waits for. */
export type Phase =
  'inspecting' | 'ready' | 'blocked' | 'submitting' | 'refused' | 'done';

/** State of the dialog; never changed in place. */
export interface DialogModel {
  phase: Phase;
  choice: Choice;
  /** How many slots the master has; null while none runs. */
  slotsOffered: number | null;
  /** What its slots are: `NVIDIA H100 (80.0 GB)`. */
  slotKinds: string;
  inspection: Inspection | null;
  refusal: Refusal | null;
}

/** What can happen to the dialog. */
export type DialogEvent =
  | { type: 'inspected'; inspection: Inspection }
  | { type: 'refused'; refusal: Refusal }
  | { type: 'slots-known'; slots: number; kinds?: string }
  | { type: 'chosen'; choice: Partial<Choice> }
  | { type: 'retried' }
  | { type: 'reread' }
  | { type: 'submitted' }
  | { type: 'accepted' };

/** The dialog as it opens. */
export function opened(slotsOffered: number | null = null): DialogModel {
  return {
    phase: 'inspecting',
    choice: { place: 'cluster', call: null, slots: null, test: false },
    slotsOffered,
    slotKinds: '',
    inspection: null,
    refusal: null
  };
}

/** The dialog after an event. */
export function next(model: DialogModel, event: DialogEvent): DialogModel {
  switch (event.type) {
    case 'inspected': {
      const { inspection } = event;
      const phase = phaseOf(inspection);
      const isFirst = model.inspection === null;
      const test = model.choice.test || (isFirst && inspection.written.test);
      const choice = { ...model.choice, test };
      return { ...model, phase, choice, inspection, refusal: null };
    }
    case 'refused':
      return { ...model, phase: 'refused', refusal: event.refusal };
    case 'slots-known':
      return {
        ...model,
        slotsOffered: event.slots,
        slotKinds: event.kinds ?? ''
      };
    case 'chosen':
      return {
        ...reconsidered(model),
        choice: { ...model.choice, ...event.choice }
      };
    case 'retried':
      return { ...model, phase: 'inspecting', refusal: null, inspection: null };
    case 'reread':
      return { ...model, phase: 'inspecting', refusal: null };
    case 'submitted':
      return canSubmit(model)
        ? { ...model, phase: 'submitting', refusal: null }
        : model;
    case 'accepted':
      return { ...model, phase: 'done' };
  }
}

/** What was refused of a notebook that can be read may be accepted once something else is chosen. */
function reconsidered(model: DialogModel): DialogModel {
  const { phase, inspection } = model;
  return phase === 'refused' && inspection !== null
    ? { ...model, phase: phaseOf(inspection), refusal: null }
    : model;
}

function phaseOf(inspection: Inspection): 'ready' | 'blocked' {
  return inspection.problems.length > 0 ? 'blocked' : 'ready';
}

/** What is wrong with the number of slots, in words; empty if nothing is. */
export function slotsProblem(model: DialogModel): string {
  if (model.choice.place === 'here') {
    return '';
  }
  const asked = model.choice.slots;
  if (asked === null) {
    return '';
  }
  if (!Number.isInteger(asked) || asked < 0) {
    return 'Enter a whole number of slots; 0 for work that needs none.';
  }
  if (model.slotsOffered !== null && asked > model.slotsOffered) {
    return `The master has ${counted(model.slotsOffered, 'slot')}: choose at most ${model.slotsOffered}.`;
  }
  return '';
}

/** Whether the notebook can be sent, or run here, as it stands. */
export function canSubmit(model: DialogModel): boolean {
  // What keeps a notebook from being sent, a secret in a cell for one, need not keep the kernel from running it.
  const fits =
    model.phase === 'ready' ||
    (model.phase === 'blocked' && model.choice.place === 'here');
  return fits && slotsProblem(model) === '';
}

/** What is said above the problems of a notebook. */
export function blockedText(place: Place): string {
  return place === 'here'
    ? 'The notebook could not be sent to the cluster; its kernel may run it all the same.'
    : 'The notebook cannot be sent as it stands.';
}

/** Words on the button that accepts. */
export function acceptLabel(model: DialogModel): string {
  if (model.phase === 'submitting') {
    return model.choice.place === 'here' ? 'Starting' : 'Submitting';
  }
  return model.choice.place === 'here' ? 'Run here' : 'Submit';
}

/** What the dialog waits for, in words; empty if it waits for nothing. */
export function waitingText(model: DialogModel): string {
  if (model.phase === 'inspecting') {
    return 'Reading the notebook: its training calls';
  }
  if (model.phase !== 'submitting') {
    return '';
  }
  if (model.choice.place === 'here') {
    return 'Preparing the kernel, once what runs in it has ended';
  }
  return 'Running the cells above the call in a process of their own, then sending';
}

/** `1 slot`, `3 slots`. */
export function counted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}
