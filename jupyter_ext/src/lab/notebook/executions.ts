/** What ran last: the text of every cell at the moment at which it was executed. */

/** How an execution ended; an aborted one never began (a cell before it failed). */
export type ExecutionEnd = 'done' | 'failed' | 'aborted';

/** Where texts outlive the page; by the id of the cell. */
export interface TextStore {
  read(): Readonly<Record<string, string>>;
  write(texts: Readonly<Record<string, string>>): void;
}

const NOWHERE: TextStore = { read: () => ({}), write: () => undefined };

/**
 * The executions of one notebook in this window.
 *
 * A cell's text is remembered when it is handed to the kernel, because it may be edited while it waits or runs.
 */
export class ExecutionMemory {
  private readonly _texts: Map<string, string>;
  private readonly _succeeded = new Map<string, string>();
  private readonly _waiting = new Map<string, string[]>();

  constructor(private readonly _store: TextStore = NOWHERE) {
    this._texts = new Map(Object.entries(_store.read()));
  }

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
    this._store.write(Object.fromEntries(this._texts));
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

/**
 * A store that outlives a reload of the page in the same window.
 *
 * @param key - Names the notebook, at the moment; empty while that is not known.
 */
export function windowStore(
  key: () => string,
  storage: Pick<Storage, 'getItem' | 'setItem'> = window.sessionStorage
): TextStore {
  return {
    read: () => textsOf(key() ? storage.getItem(PREFIX + key()) : null),
    write: texts => {
      try {
        if (key()) {
          storage.setItem(PREFIX + key(), JSON.stringify(texts));
        }
      } catch {
        // The browser's store is full: after a reload these cells count as not run.
      }
    }
  };
}

const PREFIX = 'det-native:executed:';

function textsOf(stored: string | null): Record<string, string> {
  try {
    const found: unknown = JSON.parse(stored ?? '{}');
    return Object.fromEntries(
      Object.entries(found ?? {}).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string'
      )
    );
  } catch {
    return {};
  }
}
