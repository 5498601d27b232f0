/** Tells what is newer from what is older: an answer is as old as its question. Pure. */
export class Newest {
  private _now = 0;
  private readonly _known = new Map<unknown, number>();

  /** The time at which something is asked for. */
  ask(): number {
    return (this._now += 1);
  }

  /** Whether this is newer than all that was known of a thing; it is what is known from then on. */
  takes(thing: unknown, asked = this.ask()): boolean {
    const newer = asked > (this._known.get(thing) ?? 0);
    if (newer) {
      this._known.set(thing, asked);
    }
    return newer;
  }
}
