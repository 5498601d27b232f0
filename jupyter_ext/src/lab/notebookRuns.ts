/** Runs of whole notebooks in kernels of their own, as the server extension tells of them. */
import type { ExperimentId } from '../shared/model';

export type RunState =
  'STARTING' | 'RUNNING' | 'COMPLETED' | 'FAILED' | 'STOPPED';

/** A run; times are seconds since 1970. */
export interface NotebookRun {
  id: number;
  /** Of the notebook, on the server's machine. */
  path: string;
  state: RunState;
  /** The code cell that runs or ran last, from 1; 0 before the first. */
  cell: number;
  cells: number;
  /** Why it failed or was stopped. */
  error: string;
  notes: string[];
  /** Numbers of experiments; older runs have names of before among them, `local-1`. */
  experiments: string[];
  started: number;
  ended: number;
}

export function goesOn({ state }: NotebookRun): boolean {
  return state === 'STARTING' || state === 'RUNNING';
}

/** `train.ipynb` */
export function notebookName({ path }: NotebookRun): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}

/** `cell 5 of 12` */
export function cellText({ cell, cells }: NotebookRun): string {
  return `cell ${cell} of ${cells}`;
}

/** The experiments of a run. */
export function experimentsOf({ experiments }: NotebookRun): ExperimentId[] {
  return experiments.filter(name => /^\d+$/.test(name)).map(Number);
}
