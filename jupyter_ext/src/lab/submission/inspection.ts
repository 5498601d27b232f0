/** What the server extension's `document/inspect` and `document/submit` take and answer. */
import type { ProblemInfo } from '../../shared/model';
import type { DocumentCell } from '../notebook/cells';

export type { ProblemInfo } from '../../shared/model';

/** Where an experiment trains: on the cluster, or in the notebook's own kernel. */
export type Place = 'cluster' | 'here';

/** Body of both requests. */
export interface DocumentBody {
  path: string;
  kernelspec: string;
  cells: DocumentCell[];
  place: 'cluster';
  /** Which of the training calls, from 0; null: the last. */
  call: number | null;
  /** Null: as the configuration says. */
  slots: number | null;
  test: boolean;
  idempotency_key: string;
}

/** Something to be said of a cell; what its number is, `prompts` of the inspection says. */
export interface CellRemark {
  cell: number | null;
  id: string;
  why: string;
}

/** A training call that could be sent; `running` is the cell that calls the function in which it is written. */
export interface CallChoice {
  cell: number | null;
  id: string;
  line: number;
  kind: string;
  running: number | null;
}

/** What `document/inspect` answers; nothing has been executed for it. */
export interface Inspection {
  ok: true;
  /** Whether cells have the numbers that the notebook shows in brackets; else their places among the code cells. */
  prompts: boolean;
  call: {
    cell: number | null;
    id: string;
    line: number;
    kind: string;
    /** Empty where running the cells tells it. */
    framework: string;
  };
  /** All that could be sent, and which of them this is; an older det_native says nothing. */
  calls?: CallChoice[];
  chosen?: number;
  /** Address of the master that was asked; null if none answers. */
  master: string | null;
  /** Why the master cannot be used; empty if none runs, and submitting starts one. An older det_native says nothing. */
  master_problem?: string;
  warnings: string[];
  changed: CellRemark[];
  /** Code cells of the notebook that are not empty. An older det_native says nothing. */
  cells_in_all?: number;
  /** What the document itself says. */
  written: { place: Place; test: boolean };
  /** How to run it in the notebook's kernel: code before, cells by id, code after. */
  here: { before: string; cells: string[]; after: string };
  /** Not empty: a submit would be refused, with these. */
  problems: ProblemInfo[];
}

/** What `document/submit` answers. */
export interface Submission {
  ok: true;
  experiment: { id: number; name: string };
}
