/** Runs the submit dialog: asks, sends, and tells what came of it. Knows no JupyterLab. */
import type { MasterStatus } from '../../shared/model';
import { masterInfo } from '../../shared/requests';
import { kindsText, slotName } from '../../shared/slotNames';
import { RequestError, type Transport } from '../../shared/transport';
import type { NotebookRun } from '../notebookRuns';
import {
  canSubmit,
  type Description,
  type DialogEvent,
  type DialogModel,
  next,
  type NotebookFacts,
  opened
} from './dialogModel';

/** What the controller is given. */
export interface ControllerOptions {
  transport: Transport;
  facts: NotebookFacts;
  /** The notebook's path below the server's root, and the name of its kernelspec. */
  notebook: { path: string; kernel: string };
  /** Text of the cell tagged `parameters`; empty where none is. */
  parameters: string;
  /** A fresh key, so that a repeated request begins one run. */
  newKey: () => string;
  onModel: (model: DialogModel) => void;
  /** Saves the notebook, if it has changed. */
  save: () => Promise<void>;
  /** Runs what the open kernel has not run; resolves when that has begun. */
  runInKernel: () => Promise<void>;
}

/** How the dialog ended. */
export type Outcome = { kind: 'run'; run: NotebookRun } | { kind: 'kernel' };

/** One run of the dialog. */
export class SubmitController {
  private _model: DialogModel;
  private _key: string;
  private readonly _gone = new AbortController();

  constructor(private readonly _options: ControllerOptions) {
    this._model = opened(_options.facts);
    this._key = _options.newKey();
  }

  get model(): DialogModel {
    return this._model;
  }

  /** Show the dialog, and ask meanwhile what else there is to say. */
  async begin(): Promise<void> {
    this._options.onModel(this._model);
    await Promise.all([this._describe(), this._askMaster(), this._askSlots()]);
  }

  /** Take what the user did in the form. */
  take(event: DialogEvent): void {
    if (event.type === 'chosen') {
      this._key = this._options.newKey(); // another request: its repeat must not return the first one's run
    }
    this._apply(event);
  }

  /** Begin what was chosen; null if it was refused, or is under way: the model says so. */
  async submit(): Promise<Outcome | null> {
    if (!canSubmit(this._model)) {
      return null; // Enter is pressed twice
    }
    this._apply({ type: 'submitted' });
    try {
      const outcome = await this._begin();
      this._apply({ type: 'accepted' });
      return outcome;
    } catch (error) {
      this._refused(error);
      return null;
    }
  }

  /** The user has gone away: what has not been sent is not sent. */
  abort(): void {
    this._gone.abort();
  }

  private async _begin(): Promise<Outcome> {
    const { place, ...rest } = this._model.choice;
    if (place === 'kernel') {
      await this._options.runInKernel();
      return { kind: 'kernel' };
    }
    await this._options.save();
    const run = await this._options.transport.post<NotebookRun>(
      'notebook-runs',
      { ...this._options.notebook, ...rest, place, key: this._key },
      this._gone.signal
    );
    return { kind: 'run', run };
  }

  private async _describe(): Promise<void> {
    const { transport, notebook, parameters } = this._options;
    try {
      const description = await transport.post<Description>(
        'notebook-runs/describe',
        { ...notebook, source: parameters },
        this._gone.signal
      );
      this._apply({ type: 'described', description });
    } catch (error) {
      this._refused(error);
    }
  }

  private async _askMaster(): Promise<void> {
    const { transport } = this._options;
    const status = transport.get<MasterStatus>('status', this._gone.signal);
    const master = await status.catch(() => null);
    if (master !== null) {
      this._apply({ type: 'master-known', master });
    }
  }

  private async _askSlots(): Promise<void> {
    try {
      const { slots } = await masterInfo(
        this._options.transport.api,
        this._gone.signal
      );
      const kinds = kindsText(slots.map(slotName));
      this._apply({ type: 'slots-known', slots: slots.length, kinds });
    } catch {
      // No master yet: any number of slots may be asked for, and the first training call starts one.
    }
  }

  private _refused(error: unknown): void {
    this._apply({ type: 'refused', refusal: refusalOf(error) });
  }

  private _apply(event: DialogEvent): void {
    this._model = next(this._model, event);
    if (!this._gone.signal.aborted) {
      this._options.onModel(this._model);
    }
  }
}

/** An error in words, a paragraph each. */
export function refusalOf(error: unknown): string[] {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof RequestError)) {
    return [message];
  }
  const problems = error.problems.map(({ where, what, remedy }) =>
    [where, what, remedy].filter(Boolean).join(' ')
  );
  return [`${message} ${error.remedy}`.trim(), ...problems];
}
