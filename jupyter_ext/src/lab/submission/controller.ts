/** Runs the submit dialog: asks, sends, and tells what came of it. Knows no JupyterLab. */
import { masterInfo } from '../../shared/requests';
import { kindsText, slotName } from '../../shared/slotNames';
import type { Transport } from '../../shared/transport';
import {
  canSubmit,
  type DialogEvent,
  type DialogModel,
  next,
  opened
} from './dialogModel';
import type { DocumentBody, Inspection, Submission } from './inspection';
import { refusalOf } from './refusals';

/** What the controller is given. */
export interface ControllerOptions {
  transport: Transport;
  /** The notebook as it is now; slots, test and key are filled in here. */
  document: Pick<DocumentBody, 'path' | 'kernelspec' | 'cells'>;
  /** A fresh key, so that a repeated request submits once. */
  newKey: () => string;
  onModel: (model: DialogModel) => void;
  /** Trains in the notebook's kernel, unless the user has gone away; resolves when it has begun. */
  runHere: (here: Inspection['here'], gone: AbortSignal) => Promise<void>;
}

/** How the dialog ended. */
export type Outcome =
  | { kind: 'submitted'; experiment: Submission['experiment'] }
  | { kind: 'here' };

/** One run of the dialog. */
export class SubmitController {
  private _model: DialogModel = opened();
  private _key: string;
  private _inspectedAsTest = false;
  /** Counts the readings: answers to earlier ones are of no interest. */
  private _reading = 0;
  private readonly _gone = new AbortController();

  constructor(private readonly _options: ControllerOptions) {
    this._key = _options.newKey();
  }

  get model(): DialogModel {
    return this._model;
  }

  /** Ask what would be sent, and how many slots there are. */
  async begin(): Promise<void> {
    this._options.onModel(this._model);
    await Promise.all([this._inspect(), this._askSlots()]);
  }

  /** Take what the user did in the form. */
  take(event: DialogEvent): void {
    if (event.type === 'chosen') {
      this._key = this._options.newKey(); // another request: its repeat must not return the first one's experiment
    }
    this._apply(event);
    if (event.type === 'retried') {
      void this._inspect();
    } else if (event.type === 'chosen' && event.choice.call !== undefined) {
      this._apply({ type: 'reread' });
      void this._inspect();
    }
  }

  /** Send the notebook, or begin here; null if it was refused, or is not ready: the model says why. */
  async submit(): Promise<Outcome | null> {
    const { choice, inspection } = this._model;
    if (!canSubmit(this._model) || inspection === null) {
      return null; // Enter is pressed twice, or too soon
    }
    this._apply({ type: 'submitted' });
    try {
      const outcome: Outcome =
        choice.place === 'here'
          ? await this._runHere(inspection)
          : await this._send();
      this._apply({ type: 'accepted' });
      return outcome;
    } catch (error) {
      this._refused(error);
      return null;
    }
  }

  /** The user has gone away: what is under way is called off. */
  abort(): void {
    this._gone.abort();
  }

  private async _runHere(inspection: Inspection): Promise<Outcome> {
    // What prepares the kernel says whether it is a test, and the user may have chosen otherwise since.
    const fits = this._inspectedAsTest === this._model.choice.test;
    const { here } = fits ? inspection : await this._askInspection();
    await this._options.runHere(here, this._gone.signal);
    return { kind: 'here' };
  }

  private async _send(): Promise<Outcome> {
    const answer = await this._options.transport.post<Submission>(
      'document/submit',
      this._body(),
      this._gone.signal
    );
    return { kind: 'submitted', experiment: answer.experiment };
  }

  private async _inspect(): Promise<void> {
    const reading = ++this._reading;
    try {
      const inspection = await this._askInspection();
      if (reading === this._reading) {
        this._apply({ type: 'inspected', inspection });
      }
    } catch (error) {
      if (reading === this._reading) {
        this._refused(error);
      }
    }
  }

  private async _askInspection(): Promise<Inspection> {
    const body = this._body();
    const path = 'document/inspect';
    const inspection = await this._options.transport.post<Inspection>(
      path,
      body,
      this._gone.signal
    );
    this._inspectedAsTest = body.test;
    return inspection;
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
      // No master yet: any number of slots may be asked for, and the submit starts one.
    }
  }

  private _body(): DocumentBody {
    const { choice } = this._model;
    return {
      ...this._options.document,
      place: 'cluster',
      call: choice.call,
      slots: choice.slots,
      test: choice.test,
      idempotency_key: this._key
    };
  }

  private _refused(error: unknown): void {
    if (!this._gone.signal.aborted) {
      this._apply({ type: 'refused', refusal: refusalOf(error) });
    }
  }

  private _apply(event: DialogEvent): void {
    this._model = next(this._model, event);
    if (!this._gone.signal.aborted) {
      this._options.onModel(this._model);
    }
  }
}
