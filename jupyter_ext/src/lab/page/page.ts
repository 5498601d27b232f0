/** The page of one experiment in the main area; it asks for nothing while it is not seen. */
import { Dialog, MainAreaWidget, showDialog } from '@jupyterlab/apputils';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { ExperimentElement } from '../../shared/experimentView';
import { ExperimentFeed } from '../../shared/feed';
import { shortened } from '../../shared/format';
import type {
  Checkpoint,
  ExperimentId,
  ExperimentView
} from '../../shared/model';
import { shortName } from '../../shared/paths';
import type { Transport } from '../../shared/transport';
import { experimentsIcon } from '../icons';
import { Presence } from '../presence';

/** What a page shows and calls. */
export interface PageOptions {
  experimentId: ExperimentId;
  transport: Transport;
  onLoad: (checkpoint: Checkpoint) => void;
}

/** Content of the page. */
export class ExperimentPage extends Widget {
  readonly experimentId: ExperimentId;
  private readonly _feed: ExperimentFeed;
  private readonly _element: ExperimentElement;
  private readonly _presence: Presence;

  constructor({ experimentId, transport, onLoad }: PageOptions) {
    super();
    this.experimentId = experimentId;
    this.addClass('det-Page');
    this.node.tabIndex = -1;
    this._feed = new ExperimentFeed(transport, experimentId);
    this._feed.pause(); // a restored page may lie behind others
    this._element = new ExperimentElement(this.node, this._feed, {
      page: true,
      confirm: confirmEnd,
      onLoad
    });
    this._presence = new Presence(seen =>
      seen ? this._feed.resume() : this._feed.pause()
    );
    this._feed.subscribe(view => this._name(view));
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._presence.dispose();
      this._element.dispose();
      this._feed.dispose();
    }
    super.dispose();
  }

  protected override onAfterShow(_: Message): void {
    this._presence.setShown(true);
  }

  protected override onBeforeHide(_: Message): void {
    this._presence.setShown(false);
  }

  protected override onAfterAttach(_: Message): void {
    this._presence.setShown(this.isVisible);
  }

  protected override onBeforeDetach(_: Message): void {
    this._presence.setShown(false);
  }

  protected override onActivateRequest(_: Message): void {
    this.node.focus();
  }

  private _name({ experiment }: ExperimentView): void {
    if (experiment !== null) {
      // JupyterLab's status bar shows the label whole, and has room for no more.
      this.title.label = tabLabel(this.experimentId, experiment.name);
      this.title.caption = `Experiment ${experiment.id}: ${experiment.name}`;
    }
  }
}

/** What the tab of a page says: `#2 digits`. */
export function tabLabel(experimentId: ExperimentId, name = ''): string {
  return `${shortName(experimentId)} ${shortened(name)}`.trim();
}

/** Ask whether to stop or kill, in a dialog of JupyterLab. */
export async function confirmEnd(
  question: string,
  action: string
): Promise<boolean> {
  const { button } = await showDialog({
    title: `${action} the experiment?`,
    body: question,
    buttons: [
      Dialog.cancelButton({ label: 'Go on' }),
      Dialog.warnButton({ label: action })
    ],
    defaultButton: 0
  });
  return button.accept;
}

/** Make the page of an experiment, ready for the main area. */
export function makePage(options: PageOptions): MainAreaWidget<ExperimentPage> {
  const content = new ExperimentPage(options);
  content.title.label = tabLabel(options.experimentId);
  content.title.icon = experimentsIcon;
  content.title.closable = true;
  const page = new MainAreaWidget({ content });
  page.id = `det-native-experiment-${options.experimentId}`;
  page.toolbar.hide();
  return page;
}
