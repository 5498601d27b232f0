/** One live view: chooses where its data come from, and lives as long as some cell shows it. */

import type { AnyModel } from '@anywidget/types';

import { make, setText } from '../shared/dom';
import { ExperimentElement, KNOWN_EVENT } from '../shared/experimentView';
import { ExperimentFeed } from '../shared/feed';
import type {
  Checkpoint,
  ExperimentDetail,
  ExperimentSource,
  LogLine,
  MasterStatus,
  MetricCurve,
  OutputsState,
  SystemState,
  Trial
} from '../shared/model';
import { asExperimentId } from '../shared/paths';
import { withSharedEvents } from '../shared/sharedEvents';
import { TEXTS } from '../shared/texts';
import { FetchTransport, type Transport } from '../shared/transport';
import { watchVisibility } from '../shared/visibility';
import { KernelFeed } from './kernelFeed';
import { type Page, readPage } from './page';

/** What the kernel says of a view. */
export interface WidgetState {
  /** What tells one display from another. */
  view_id: string;
  /** Number on the master; a version before saved `local-3` for runs of its own. */
  experiment_id: number;
  /** 0 for the whole experiment. */
  trial_id: number;
  /** Address of the master. */
  master_url: string;
  /** Whether a cell of the kernel waits for its end. */
  waiting: boolean;
  /** Why the kernel cannot tell how things are; empty while it can. */
  lost: string;
  /** What the kernel told last; null before. */
  experiment: ExperimentDetail | null;
  trials: readonly Trial[] | null;
  checkpoints: readonly Checkpoint[] | null;
  curves: readonly MetricCurve[] | null;
  logs: readonly LogLine[] | null;
  system: SystemState | null;
  outputs: OutputsState | null;
}

/** A renewed output is rendered again within this time. */
const GRACE_MILLISECONDS = 2000;

export class Mounted {
  private readonly _host = make('div');
  private readonly _loading = make('p', '', { role: 'status' });
  private readonly _elsewhere = make('p', 'det-empty');
  private _source: ExperimentSource | null = null;
  private _element: ExperimentElement | null = null;
  private _end: ReturnType<typeof setTimeout> | null = null;
  private _unwatch: () => void = () => undefined;
  private readonly _places: HTMLElement[] = [];
  private _disposed = false;
  /** What a server does not know, but the kernel. */
  private readonly _noted = () => {
    this._element?.offerLeaving(
      this._model.get('waiting')
        ? () => this._model.send({ type: 'leave' })
        : null
    );
  };

  constructor(private readonly _model: AnyModel<WidgetState>) {
    setText(this._loading, TEXTS.loading);
    setText(this._elsewhere, TEXTS.elsewhere);
    this._host.append(this._loading);
    void this._begin();
  }

  get disposed(): boolean {
    return this._disposed;
  }

  /** Show the view here, and not where it was before, which says so; returns what takes it away, or back. */
  attach(place: HTMLElement): () => void {
    this._places.at(-1)?.append(this._elsewhere);
    this._places.push(place);
    if (this._end !== null) {
      clearTimeout(this._end);
      this._end = null;
    }
    place.append(this._host);
    return () => this._detach(place);
  }

  private _detach(place: HTMLElement): void {
    const index = this._places.lastIndexOf(place);
    if (index < 0) {
      return;
    }
    this._places.splice(index, 1);
    const last = this._places.at(-1);
    if (last === undefined) {
      this._end = setTimeout(() => this._dispose(), GRACE_MILLISECONDS);
    } else {
      this._elsewhere.remove();
      if (this._host.parentNode !== last) {
        last.append(this._host);
        this._host.dispatchEvent(new Event(KNOWN_EVENT, { bubbles: true }));
      }
      this._places.at(-2)?.append(this._elsewhere);
    }
  }

  private async _begin(): Promise<void> {
    const source = await chooseSource(this._model);
    if (this._disposed) {
      source.dispose();
      return;
    }
    this._source = source;
    this._loading.remove();
    this._element = new ExperimentElement(this._host, source);
    this._model.on('change', this._noted);
    this._noted();
    this._unwatch = watchVisibility(this._host, visible =>
      visible ? source.resume() : source.pause()
    );
  }

  private _dispose(): void {
    this._disposed = true;
    this._model.off('change', this._noted);
    this._unwatch();
    this._element?.dispose();
    this._source?.dispose();
    this._host.remove();
  }
}

/** By the Jupyter server if it knows the kernel's master, which needs no idle kernel; else from the kernel. */
async function chooseSource(
  model: AnyModel<WidgetState>
): Promise<ExperimentSource> {
  const id = asExperimentId(model.get('experiment_id'));
  const transport =
    id === null ? null : await serverOf(model.get('master_url'));
  if (transport && id !== null) {
    model.send({ type: 'served' });
    return new ExperimentFeed(transport, id, model.get('trial_id'));
  }
  return new KernelFeed(model);
}

/** The way to the server extension; the views of a page share its streams. */
function transportOf(page: Page): Transport {
  return withSharedEvents(
    new FetchTransport(page.baseUrl, undefined, () => page.headers),
    new URL(page.baseUrl, location.href).pathname
  );
}

/** The way to the server extension, if there is one and it does not know another master. */
async function serverOf(masterUrl: string): Promise<Transport | null> {
  const page = readPage();
  if (!page) {
    return null;
  }
  const transport = transportOf(page);
  try {
    const status = await transport.get<MasterStatus>('status');
    return !status.master || sameAddress(status.master.url, masterUrl)
      ? transport
      : null;
  } catch {
    return null; // no server extension: the kernel tells
  }
}

/** Whether two addresses are of the same master; this machine has more than one name for itself. */
function sameAddress(one: string, other: string): boolean {
  const normal = (url: string) =>
    url
      .replace(/\/+$/, '')
      .replace(/^(https?:\/\/)(localhost|\[::1\])(?=:|$)/, '$1127.0.0.1');
  return normal(one) === normal(other);
}
