/** The open pages: one for each experiment, restored with the workspace. */
import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { type MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';

import type { Checkpoint, ExperimentId } from '../../shared/model';
import type { Transport } from '../../shared/transport';
import { CommandIds } from '../commandIds';
import { type ExperimentPage, makePage } from './page';

/** Opens pages and knows which is in front. */
export class ExperimentPages {
  private readonly _tracker = new WidgetTracker<MainAreaWidget<ExperimentPage>>(
    {
      namespace: 'det-native-experiment'
    }
  );

  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _transport: Transport,
    private readonly _onLoad: (
      experimentId: ExperimentId,
      checkpoint: Checkpoint
    ) => void
  ) {}

  /** Experiment of the page in front; null if something else is there. */
  get currentExperiment(): ExperimentId | null {
    const page = this._tracker.currentWidget;
    const inFront = page !== null && this._app.shell.currentWidget === page;
    return inFront ? page.content.experimentId : null;
  }

  /** Open the page of an experiment, or bring it to the front. */
  open(experimentId: ExperimentId): void {
    const known = this._tracker.find(
      page => page.content.experimentId === experimentId
    );
    if (known !== undefined) {
      this._app.shell.activateById(known.id);
      return;
    }
    const page = makePage({
      experimentId,
      transport: this._transport,
      onLoad: checkpoint => this._onLoad(experimentId, checkpoint)
    });
    this._app.shell.add(page, 'main');
    void this._tracker.add(page);
    this._app.shell.activateById(page.id);
  }

  /** Open again with the workspace what was open. */
  restoreBy(restorer: ILayoutRestorer): void {
    void restorer.restore(this._tracker, {
      command: CommandIds.open,
      args: page => ({ id: page.content.experimentId }),
      name: page => String(page.content.experimentId)
    });
  }
}
