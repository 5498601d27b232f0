/** What a user interface shows of a master, by names; the shapes are those of the master's REST interface. */

import type { components } from '../generated/rest';

type Schemas = components['schemas'];

/** Number on the master. */
export type ExperimentId = number;

export type Experiment = Schemas['Experiment'];
export type ExperimentDetail = Schemas['ExperimentDetail'];
export type ExperimentState = Experiment['state'];
export type Trial = Schemas['Trial'];
export type TrialState = Trial['state'];
export type Checkpoint = Schemas['Checkpoint'];
export type LogLine = Schemas['LogLine'];
export type MetricCurve = Schemas['MetricCurve'];
export type SystemSample = Schemas['SystemSample'];
export type Medium = Schemas['Medium'];
export type Artifact = Schemas['Artifact'];
export type UserErrorInfo = Schemas['UserErrorInfo'];
export type CaptureRow = Schemas['CaptureRow'];
export type ProblemInfo = Schemas['ProblemInfo'];
export type SlotInfo = Schemas['SlotInfo'];
export type MasterInfo = Schemas['MasterInfo'];

/** How things stand with the master, as the server extension says it; `lost` is said by the page alone. */
export type MasterState =
  'running' | 'none' | 'starting' | 'unauthorised' | 'mismatch' | 'unreachable';

/** Answer of `GET det-native/api/status`. */
export interface MasterStatus {
  state: MasterState;
  message: string;
  remedy: string;
  version: string;
  protocol: number;
  master: { url: string; version: string; protocol: number } | null;
  can_start: boolean;
}

/** What a user can ask of an experiment. */
export type Action = 'pause' | 'resume' | 'stop' | 'kill';

/** How the page is connected to what it shows. */
export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** Hidden: no traffic. */
  | { readonly kind: 'resting' }
  /** The experiment has ended; nothing more will come. */
  | { readonly kind: 'ended' }
  /** The master knows no such experiment; nothing is asked for until the user wants it. */
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'lost';
      /** Milliseconds since 1970. */
      readonly since: number;
      /** There was none before that could have been lost. */
      readonly never?: boolean;
      /** State of the master; `refused`, `absent` where the server does; `gone` with the kernel, for good. */
      readonly state: string;
      readonly message: string;
      readonly remedy: string;
    };

/** Whose log is shown, and how far back it is loaded. */
export interface LogState {
  readonly trialId: number | null;
  /** The user has chosen this trial; else it is the one of most interest. */
  readonly chosen: boolean;
  /** There are no earlier lines than those that are loaded. */
  readonly atBegin: boolean;
}

/** What a trial uses of its machine, by time. */
export interface SystemState {
  readonly trialId: number;
  readonly samples: readonly SystemSample[];
}

/** What a trial has logged besides metrics, and the files that its code has written. */
export interface OutputsState {
  readonly trialId: number;
  /** The user has chosen this trial; else it is the best one. */
  readonly chosen: boolean;
  readonly media: readonly Medium[];
  readonly files: readonly Artifact[];
}

/** Everything that is shown of one experiment; never changed in place. */
export interface ExperimentView {
  readonly id: ExperimentId;
  /** 0 for the whole experiment. */
  readonly trialId: number;
  readonly experiment: ExperimentDetail | null;
  readonly trials: readonly Trial[];
  readonly checkpoints: readonly Checkpoint[];
  readonly curves: readonly MetricCurve[];
  readonly logs: readonly LogLine[];
  /** Null where there is nothing to choose: the source tells the last lines only. */
  readonly log: LogState | null;
  /** Of the trial whose log is shown; null where nothing is known of that. */
  readonly system: SystemState | null;
  /** Null while nothing is known of that. */
  readonly outputs: OutputsState | null;
  readonly connection: Connection;
}

/** Follows one experiment, wherever the data come from. */
export interface ExperimentSource {
  readonly view: ExperimentView;
  /** Call `listener` at every change, and once now; returns what ends it. */
  subscribe(listener: (view: ExperimentView) => void): () => void;
  /** Ask for something; rejects with words for the user if it is refused. */
  act(action: Action): Promise<void>;
  /** Show the log of this trial, null for that of most interest; rejects with words for the user. */
  chooseLog?(trialId: number | null): Promise<void>;
  /** Load earlier lines of the log; rejects with words for the user. */
  earlierLogs?(): Promise<void>;
  /** Show what this trial has logged and written, null for the best one; rejects with words for the user. */
  chooseOutputs?(trialId: number | null): Promise<void>;
  /** What was logged, as it is to be read by its format; rejects with words for the user. */
  content?(medium: Medium): Promise<Blob>;
  /** Address of a file; null where this page cannot fetch it. */
  fileAddress?(file: Artifact): string | null;
  /** Start the master of the Jupyter server's machine; rejects with words for the user. */
  start?(): Promise<void>;
  /** Try again now, instead of at the end of the pause. */
  retry(): void;
  /** No traffic until `resume`: for what is hidden. */
  pause(): void;
  resume(): void;
  dispose(): void;
}

/** Of more trials than these, the curves of the best one and the newest are asked for. */
export const TRIALS_WITH_CURVES = 50;

const TERMINAL: ReadonlySet<string> = new Set([
  'CANCELED',
  'COMPLETED',
  'ERROR',
  'DELETED'
]);

/** Whether nothing more happens in a state of an experiment or a trial. */
export function isTerminal(state: ExperimentState | TrialState): boolean {
  return TERMINAL.has(state);
}
