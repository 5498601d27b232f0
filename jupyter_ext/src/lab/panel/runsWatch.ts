/** The runs of notebooks on this machine; asked for again and again only while one goes on and the panel is seen. */
import type { ExperimentId } from '../../shared/model';
import type { Transport } from '../../shared/transport';
import { goesOn, type NotebookRun } from '../notebookRuns';

const MILLISECONDS = 2000;
/** A run that has ended stays in the panel so long. */
const LATELY_SECONDS = 3600;
const MOST_ENDED = 4;

/** Follows the runs. */
export class RunsWatch {
  private _runs: readonly NotebookRun[] = [];
  private _seen = false;
  private _experiments = '';
  private _asking = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;

  /** Called when something has changed. */
  onChange: () => void = () => undefined;

  constructor(private readonly _transport: Transport) {}

  /** The runs, newest first. */
  get runs(): readonly NotebookRun[] {
    return this._runs;
  }

  /** The run that has begun an experiment of the master; null if none here has. */
  runOf(experimentId: ExperimentId | undefined): NotebookRun | null {
    const name = String(experimentId);
    return this._runs.find(run => run.experiments.includes(name)) ?? null;
  }

  /** Say whether the panel is seen. */
  setSeen(seen: boolean): void {
    this._seen = seen;
    if (seen) {
      void this.ask();
    } else {
      this._stop();
    }
  }

  /** An experiment that is new may be of a run that was begun elsewhere. */
  follow(newest: ExperimentId | undefined): void {
    const key = String(newest);
    if (this._seen && key !== this._experiments) {
      this._experiments = key;
      void this.ask();
    }
  }

  /** Ask now. */
  async ask(): Promise<void> {
    if (this._asking) {
      return;
    }
    this._asking = true;
    this._stop();
    try {
      const runs = await this._transport.get<NotebookRun[]>('notebook-runs');
      if (JSON.stringify(runs) !== JSON.stringify(this._runs)) {
        this._runs = runs;
        this.onChange();
      }
    } catch {
      // The list of experiments says what is wrong with the server.
    } finally {
      this._asking = false;
    }
    if (this._seen && this._runs.some(goesOn)) {
      this._timer = setTimeout(() => void this.ask(), MILLISECONDS);
    }
  }

  private _stop(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }
}

/**
 * The runs that the panel lists: all that go on, and the last that ended lately.
 *
 * @param now - Milliseconds since 1970.
 */
export function listedRuns(
  runs: readonly NotebookRun[],
  now: number
): NotebookRun[] {
  const since = now / 1000 - LATELY_SECONDS;
  const ended = runs.filter(run => !goesOn(run) && run.ended >= since);
  return [...runs.filter(goesOn), ...ended.slice(0, MOST_ENDED)];
}
