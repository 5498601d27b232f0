/** Errors of requests, as the dialog shows them. */
import { RequestError } from '../../shared/transport';
import type { ProblemInfo } from './inspection';

/** A refusal in words: what is wrong, what to do, and the single problems behind it. */
export interface Refusal {
  message: string;
  remedy: string;
  problems: readonly ProblemInfo[];
  /** Whether the same request may be accepted another time: what is wrong in the notebook stays wrong. */
  canRetry: boolean;
}

/** An error that stays while the dialog is open, and what to do once it is closed. */
export class LastingError extends Error {
  constructor(
    message: string,
    readonly remedy: string
  ) {
    super(message);
    this.name = 'LastingError';
  }
}

/** HTTP status where something in the notebook is wrong. */
const BAD_NOTEBOOK = 400;

/** Put an error into words. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof LastingError) {
    const { message, remedy } = error;
    return { message, remedy, problems: [], canRetry: false };
  }
  if (!(error instanceof RequestError)) {
    const message = error instanceof Error ? error.message : String(error);
    return { message, remedy: '', problems: [], canRetry: true };
  }
  const { message, remedy, problems, status } = error;
  return { message, remedy, problems, canRetry: status !== BAD_NOTEBOOK };
}
