/** How many slots of the master are busy; asked for only while the panel is seen and something has changed. */
import type { ListView } from '../../shared/listFeed';
import type { SlotInfo } from '../../shared/model';
import { masterInfo } from '../../shared/requests';
import { kindsText, slotName } from '../../shared/slotNames';
import type { Transport } from '../../shared/transport';

/** A worker gives its slot back a moment after its experiment has ended: then it is asked once more. */
const SETTLED_MILLISECONDS = 4000;

/** Slots of the master. */
export interface Slots {
  busy: number;
  all: number;
  /** What its GPUs are; empty where there are none. */
  gpus: string;
  /** A line for each GPU. */
  lines: string;
}

/** What is told of the slots of a master. */
export function slotsOf(slots: readonly SlotInfo[]): Slots {
  const isHeld = ({ trial_id }: SlotInfo) => typeof trial_id === 'number';
  const gpus = slots.filter(({ device }) => device === 'cuda');
  return {
    busy: slots.filter(isHeld).length,
    all: slots.length,
    gpus: kindsText(gpus.map(slotName)),
    lines: gpus
      .map(gpu => {
        const holder = isHeld(gpu) ? `trial ${heldBy(gpu)}` : 'free';
        return `${gpu.id}: ${slotName(gpu)}, ${holder}`;
      })
      .join('\n')
  };
}

/** The trial that holds a slot: `7.2`, its id where a version of before tells no more. */
function heldBy({ trial_id, experiment_id, trial_number }: SlotInfo): string {
  return experiment_id && trial_number
    ? `${experiment_id}.${trial_number}`
    : String(trial_id);
}

/** What of a list of experiments may change which slots are busy. */
export function slotsKey(view: ListView): string {
  const active = view.experiments.filter(
    experiment =>
      !experiment.in_kernel &&
      experiment.state !== 'COMPLETED' &&
      experiment.ended === null
  );
  return active
    .map(({ id, state, trials, started }) =>
      [id, state, trials, started ?? ''].join(':')
    )
    .join(' ');
}

/** Follows the slots along with a list of experiments. */
export class SlotsWatch {
  private _found: Slots | null = null;
  private _key: string | null = null;
  private _asking = false;
  private _again: ReturnType<typeof setTimeout> | null = null;

  /** Called when other slots are busy. */
  onChange: () => void = () => undefined;

  constructor(private readonly _transport: Transport) {}

  /** The slots as last heard of; null before. */
  get found(): Slots | null {
    return this._found;
  }

  /** Ask again if the list has changed in what matters. */
  follow(view: ListView, seen: boolean): void {
    if (view.connection.kind !== 'live' || !seen) {
      this._key = null;
      this._stopAgain();
      return;
    }
    const key = slotsKey(view);
    if (key !== this._key && !this._asking) {
      this._key = key;
      this._stopAgain();
      this._again = setTimeout(() => void this._ask(), SETTLED_MILLISECONDS);
      void this._ask();
    }
  }

  private _stopAgain(): void {
    if (this._again !== null) {
      clearTimeout(this._again);
      this._again = null;
    }
  }

  private async _ask(): Promise<void> {
    this._asking = true;
    try {
      const { slots } = await masterInfo(this._transport.api);
      this._found = slotsOf(slots);
    } catch {
      this._found = null; // the list's own stream says what is wrong
    } finally {
      this._asking = false;
    }
    this.onChange();
  }
}
