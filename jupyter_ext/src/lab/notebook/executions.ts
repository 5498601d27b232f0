/** What a notebook's kernel has run: the text of every cell at the moment at which it was executed. */

/** How an execution ended; an aborted one never began (a cell before it failed). */
export type ExecutionEnd = 'done' | 'failed' | 'aborted';

/** Texts that a kernel has executed without an error, by the id of the cell. */
export interface Executed {
  /** Id of the kernel. */
  kernel: string;
  texts: Readonly<Record<string, string>>;
}

/** Where they outlive the page. */
export interface ExecutedStore {
  read(): Executed;
  write(executed: Executed): void;
}

const NOTHING: Executed = { kernel: '', texts: {} };
const NOWHERE: ExecutedStore = { read: () => NOTHING, write: () => undefined };

/**
 * The executions of one notebook in this window.
 *
 * A cell's text is remembered when it is handed to the kernel, because it may be edited while it waits or runs.
 */
export class ExecutionMemory {
  private readonly _texts: Map<string, string>;
  private readonly _waiting = new Map<string, string[]>();
  private _kernel: string;

  constructor(private readonly _store: ExecutedStore = NOWHERE) {
    const { kernel, texts } = _store.read();
    this._kernel = kernel;
    this._texts = new Map(Object.entries(texts));
  }

  /** Note which kernel the notebook has: of another one's executions nothing lives. */
  kernelIs(id: string): void {
    if (id !== this._kernel) {
      this._kernel = id;
      this.kernelRestarted();
    }
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
    if (end === 'done') {
      this._texts.set(cellId, source);
    } else {
      this._texts.delete(cellId);
    }
    this._keep();
  }

  /** The kernel has begun anew: nothing of what it ran lives any more. */
  kernelRestarted(): void {
    this._waiting.clear();
    this._texts.clear();
    this._keep();
  }

  /** Whether the kernel has run a cell with this text without an error, or is about to. */
  hasRun(cellId: string, source: string): boolean {
    const last = this._waiting.get(cellId)?.at(-1) ?? this._texts.get(cellId);
    return last === source;
  }

  /** Texts that the kernel which runs now has executed without an error. */
  get alive(): string[] {
    return [...this._texts.values()];
  }

  private _keep(): void {
    const texts = Object.fromEntries(this._texts);
    this._store.write({ kernel: this._kernel, texts });
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
): ExecutedStore {
  return {
    read: () => executedOf(key() ? storage.getItem(PREFIX + key()) : null),
    write: executed => {
      try {
        if (key()) {
          storage.setItem(PREFIX + key(), JSON.stringify(executed));
        }
      } catch {
        // The browser's store is full: after a reload these cells count as not run.
      }
    }
  };
}

const PREFIX = 'det-native:executed:';

function executedOf(stored: string | null): Executed {
  try {
    const found = JSON.parse(stored ?? '{}') as Partial<Executed> | null;
    const texts = Object.entries(found?.texts ?? {}).filter(
      ([, text]) => typeof text === 'string'
    );
    return {
      kernel: String(found?.kernel ?? ''),
      texts: Object.fromEntries(texts)
    };
  } catch {
    return NOTHING;
  }
}
