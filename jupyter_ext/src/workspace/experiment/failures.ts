/** What went wrong in an experiment, each cause once. Pure. */

import { whereText } from '../../shared/facts';
import { cellName } from '../../shared/format';
import type { ExperimentView, Trial, UserErrorInfo } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { trialNumber } from '../../shared/trialNumbers';

export interface Failure {
  /** `ValueError`; empty where it is no exception. */
  readonly type: string;
  readonly message: string;
  /** `cell [4], line 2`; empty where no code is to blame. */
  readonly place: string;
  /** The number of the cell in the Code tab; null for none. */
  readonly cell: number | null;
  /** `at batch 6, on rank 1`. */
  readonly when: string;
  readonly remedy: string;
  /** Trials that failed so, by their numbers; empty where it was the experiment. */
  readonly trials: readonly number[];
  /** The id of the first of them, whose log tells more; null for none. */
  readonly trialId: number | null;
  readonly retried: boolean;
  readonly frames: readonly Frame[];
}

/** Some lines of a traceback: a frame with its code, or what stands around frames. */
export interface Frame {
  readonly text: string;
  /** Not the user's: of det_native, a framework or Python. */
  readonly foreign: boolean;
}

const REMEDIES: ReadonlyArray<readonly [pattern: RegExp, remedy: string]> = [
  [
    /out of memory|OutOfMemory|ResourceExhausted|MemoryError/i,
    'Take a smaller batch size or model, or more slots: Fork with changes has fields for them.'
  ],
  [
    /ModuleNotFoundError|No module named/,
    'Install the module where the master’s workers run, then fork the experiment.'
  ],
  [
    /FileNotFoundError|No such file/,
    'The file was not there where the trial ran: the Report tab says what was sent along.'
  ],
  [
    /\bNaN\b|not finite|is nan\b/i,
    'Try a smaller learning rate: Fork with changes has a field for it.'
  ]
];

/** What can be done, where the message does not say it. */
export function remedyOf({ type, message }: UserErrorInfo): string {
  const text = `${type}: ${message}`;
  return REMEDIES.find(([pattern]) => pattern.test(text))?.[1] ?? '';
}

/** Each cause once, with the trials that it made fail. */
export function causesOf(view: ExperimentView): Failure[] {
  const found = new Map<string, { error: UserErrorInfo; trials: Trial[] }>();
  for (const trial of view.trials) {
    const { error, state } = trial;
    // That its code refused its hyperparameters is no failure, and stands beside its state.
    const refused = state === 'CANCELED' && error?.type === 'InvalidHP';
    if (error && state !== 'COMPLETED' && !refused) {
      const key = keyOf(error);
      const known = found.get(key);
      if (known) {
        known.trials.push(trial);
      } else {
        found.set(key, { error, trials: [trial] });
      }
    }
  }
  const causes = [...found.values()].map(({ error, trials }) =>
    causeOf(error, trials)
  );
  const error = view.experiment?.error;
  if (
    error &&
    view.experiment?.state !== 'CANCELED' &&
    !found.has(keyOf(error))
  ) {
    causes.push(causeOf(error, []));
  }
  return causes;
}

/** Failures of one cause: the same exception at the same place. What a message counts differs from trial to trial. */
function keyOf({ type, message, cell, file, line }: UserErrorInfo): string {
  const plain = message.replaceAll(/\d+(\.\d+)?(e[-+]?\d+)?/gi, '#');
  return JSON.stringify([type, plain, cell, file, line]);
}

function causeOf(error: UserErrorInfo, trials: readonly Trial[]): Failure {
  const { type, message, cell = null, file, line } = error;
  const names = [
    typeof cell === 'number' ? cellName(cell) : '',
    file ?? ''
  ].filter(Boolean);
  const at =
    typeof line === 'number' && names.length > 0 ? [`line ${line}`] : [];
  return {
    type,
    message: message.trim(),
    place: [...names, ...at].join(', '),
    cell,
    when: whereText({ ...error, cell: null, file: null }).trim(),
    remedy: remedyOf(error),
    trials: trials.map(trialNumber),
    trialId: trials[0]?.id ?? null,
    retried: trials.some(({ state }) => !isTerminal(state)),
    frames: framesOf(error.traceback)
  };
}

const HEAD = /^\s*(File "(?<file>[^"]*)"|Cell |cell |Code cell |code cell )/;
const FOREIGN =
  /[\\/](det_native|site-packages|dist-packages|lib[\\/]python\d)|<frozen /;

/** A traceback in frames: each begins with the line that says where it is. */
export function framesOf(traceback: string): Frame[] {
  const frames: Array<{ lines: string[]; foreign: boolean }> = [];
  for (const line of traceback.replace(/\s+$/, '').split('\n')) {
    const head = HEAD.exec(line);
    const current = frames.at(-1);
    const around = !/^\s/.test(line) && !head;
    if (head || around || current === undefined) {
      const foreign = head !== null && FOREIGN.test(line);
      frames.push({ lines: [line], foreign });
    } else {
      current.lines.push(line);
    }
  }
  return frames
    .map(({ lines, foreign }) => ({ text: lines.join('\n'), foreign }))
    .filter(({ text }) => text !== '');
}

const MOST_NAMED = 8;

/** `1, 2, 3`; of many the first ones. */
export function namesOf(trials: readonly number[]): string {
  const more = trials.length > MOST_NAMED ? '…' : '';
  return trials.slice(0, MOST_NAMED).join(', ') + more;
}
