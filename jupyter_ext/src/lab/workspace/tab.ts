/** A tab of the main area that shows the workspace; it asks for nothing while it is not seen. */
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { WorkspaceElement } from '../../workspace/app/workspace';
import { readAddress } from '../../workspace/app/address';
import type { Host } from '../../workspace/app/host';
import { experimentsIcon } from '../icons';
import { Presence } from '../presence';
import type { TabNavigation } from './navigation';

export type TabHost = Omit<Host, 'kind' | 'navigation' | 'setTitle'>;

/** Content of the tab. */
export class WorkspaceWidget extends Widget {
  private readonly _element: WorkspaceElement;
  private readonly _presence: Presence;

  constructor(
    host: TabHost,
    readonly navigation: TabNavigation
  ) {
    super();
    this.addClass('det-WorkspaceTab');
    this.node.tabIndex = -1;
    this._element = new WorkspaceElement(this.node, {
      ...host,
      kind: 'lab',
      navigation,
      setTitle: (title, caption) => {
        this.title.label = title;
        this.title.caption = caption ?? title;
      }
    });
    this._presence = new Presence(seen =>
      seen ? this._element.resume() : this._element.pause()
    );
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._presence.dispose();
      this._element.dispose();
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
}

/** Id of the tab in which an address is shown: experiments have tabs of their own, all else is in one. */
export function tabId(address: string): string {
  const { place } = readAddress(address);
  return place.page === 'experiment'
    ? `det-native-experiment-${place.id}`
    : 'det-native-workspace';
}

/** Make a tab, ready for the main area. */
export function makeTab(
  host: TabHost,
  navigation: TabNavigation
): MainAreaWidget<WorkspaceWidget> {
  const content = new WorkspaceWidget(host, navigation);
  content.title.icon = experimentsIcon;
  content.title.closable = true;
  const tab = new MainAreaWidget({ content });
  tab.id = tabId(navigation.current);
  tab.toolbar.hide();
  return tab;
}
