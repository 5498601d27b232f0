/** What was logged, fetched when it is shown and kept for a while: a slider goes back and forth. */

import type { Medium } from './model';
import { mimeOf } from './outputs';

const KEPT = 100;

export type ReadContent = (medium: Medium) => Promise<Blob>;

export class MediaContents {
  private readonly _blobs = new Map<string, Promise<Blob>>();
  private readonly _addresses = new Map<string, string>();

  constructor(private readonly _read: ReadContent | undefined) {}

  /** Whether there is a way to contents at all. */
  get readable(): boolean {
    return this._read !== undefined;
  }

  /** An address of a picture, good until it is not kept any more. */
  async address(medium: Medium): Promise<string> {
    const blob = await this._blob(medium);
    const known = this._addresses.get(medium.sha256);
    if (known !== undefined) {
      return known;
    }
    const address = URL.createObjectURL(blob);
    this._addresses.set(medium.sha256, address);
    return address;
  }

  /** The same as text, for a page whose policy takes no address of a blob. */
  async dataAddress(medium: Medium): Promise<string> {
    const blob = await this._blob(medium);
    return read(reader => reader.readAsDataURL(blob));
  }

  async text(medium: Medium): Promise<string> {
    const blob = await this._blob(medium);
    return read(reader => reader.readAsText(blob));
  }

  async json(medium: Medium): Promise<unknown> {
    return JSON.parse(await this.text(medium)) as unknown;
  }

  dispose(): void {
    this._addresses.forEach(address => URL.revokeObjectURL(address));
    this._addresses.clear();
    this._blobs.clear();
  }

  private _blob(medium: Medium): Promise<Blob> {
    const { sha256 } = medium;
    const known = this._blobs.get(sha256);
    const found = known ?? this._fetch(medium);
    this._blobs.delete(sha256); // those that were used last stay
    this._blobs.set(sha256, found);
    if (!known) {
      found.catch(() => this._forget(sha256));
    }
    const oldest = this._blobs.keys().next().value;
    if (this._blobs.size > KEPT && oldest !== undefined) {
      this._forget(oldest);
    }
    return found;
  }

  private async _fetch(medium: Medium): Promise<Blob> {
    if (!this._read) {
      throw new Error('It cannot be fetched here.');
    }
    const blob = await this._read(medium);
    return new Blob([blob], { type: mimeOf(medium) });
  }

  private _forget(sha256: string): void {
    this._blobs.delete(sha256);
    const address = this._addresses.get(sha256);
    if (address !== undefined) {
      URL.revokeObjectURL(address);
      this._addresses.delete(sha256);
    }
  }
}

/** What a reader of the browser makes of a blob. */
function read(begin: (reader: FileReader) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () =>
      reject(reader.error ?? new Error('It cannot be read.'));
    begin(reader);
  });
}
