/** Follows the runs that kernels and scripts of this machine train by themselves; no master is needed for them. */

import { Follower } from './follower';
import type { Experiment } from './model';
import { LOCAL_EVENTS } from './paths';
import type { StreamEvent } from './sse';
import type { Transport } from './transport';

/** The local runs that are kept, live. Begins with `resume`. */
export class LocalRuns {
  private _known: readonly Experiment[] = [];
  private readonly _follower: Follower;

  /**
   * @param _onChange - Called when there are others, or one has changed.
   */
  constructor(
    private readonly _transport: Transport,
    private readonly _onChange: () => void
  ) {
    this._follower = new Follower(
      _transport,
      {},
      {
        load: signal => this._load(signal),
        live: () => undefined,
        event: event => this._take(event),
        finished: () => false,
        ended: () => undefined,
        // Said of the master's list, which comes over the same server; runs that are known stay.
        lost: () => undefined
      },
      LOCAL_EVENTS
    );
  }

  /** In no order. */
  get experiments(): readonly Experiment[] {
    return this._known;
  }

  pause(): void {
    this._follower.pause();
  }

  resume(): void {
    this._follower.resume();
  }

  dispose(): void {
    this._follower.dispose();
  }

  private async _load(signal: AbortSignal): Promise<void> {
    const found = await this._transport.get<Experiment[]>(
      'local/experiments',
      signal
    );
    this._show(found);
  }

  private _take({ event, data }: StreamEvent): void {
    if (event === 'experiment') {
      const { data: changed } = data as { data: Experiment };
      const others = this._known.filter(({ id }) => id !== changed.id);
      this._show([...others, changed]);
    }
  }

  private _show(known: readonly Experiment[]): void {
    this._known = known;
    this._onChange();
  }
}
