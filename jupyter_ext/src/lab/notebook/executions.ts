/** What ran last: the text of every cell at the moment at which it was executed. */

/** How an execution ended; an aborted one never began (a cell before it failed). */
export type ExecutionEnd = 'done' | 'failed' | 'aborted';

/**
 * The executions of one notebook since it was opened in this page.
 *
 * A cell's text is remembered when it is handed to the kernel, because it may be edited while it waits or runs.
 */
export class ExecutionMemory {
  private readonly _texts = new Map<string, string>();
  private readonly _succeeded = new Map<string, string>();
  private readonly _waiting = new Map<string, string[]>();

  /** Note that a cell was handed to the kernel with this text. */
  scheduled(cellId: string, source: string): void {
    const waiting = this._waiting.get(cellId) ?? [];
    this._waiting.set(cellId, [...waiting, source]);
  }

  /** Note how the oldest unfinished execution of a cell ended. */
  ended(cellId: string, end: ExecutionEnd): void {
    const [source, ...rest] = this._waiting.get(cellId) ?? [];
    if (rest.length > 0) {
      this._waiting.set(cellId, rest);
    } else {
      this._waiting.delete(cellId);
    }
    if (source === undefined || end === 'aborted') {
      return;
    }
    this._texts.set(cellId, source);
    if (end === 'done') {
      this._succeeded.set(cellId, source);
    } else {
      this._succeeded.delete(cellId);
    }
  }

  /** The kernel has begun anew: the texts still ran last, but nothing of them lives any more. */
  kernelRestarted(): void {
    this._waiting.clear();
    this._succeeded.clear();
  }

  /** Text of a cell when it last ran; null if that is not known. */
  lastRan(cellId: string): string | null {
    return this._texts.get(cellId) ?? null;
  }

  /** Texts that the kernel which runs now has executed without an error. */
  get alive(): string[] {
    return [...this._succeeded.values()];
  }
}
