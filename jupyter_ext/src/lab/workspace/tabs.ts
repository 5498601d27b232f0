/** The open tabs of the workspace, restored with JupyterLab's own workspace. */
import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { type MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';

import type { ExperimentId } from '../../shared/model';
import {
  experimentAddress,
  HOME,
  readAddress
} from '../../workspace/app/address';
import { CommandIds } from '../commandIds';
import { TabNavigation } from './navigation';
import { makeTab, type TabHost, tabId, type WorkspaceWidget } from './tab';

/** Opens tabs and knows which is in front. */
export class WorkspaceTabs {
  private readonly _tracker = new WidgetTracker<
    MainAreaWidget<WorkspaceWidget>
  >({ namespace: 'det-native-workspace' });

  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _host: TabHost
  ) {}

  /** Experiment of the tab in front; null if something else is there. */
  get currentExperiment(): ExperimentId | null {
    const tab = this._tracker.currentWidget;
    if (tab === null || this._app.shell.currentWidget !== tab) {
      return null;
    }
    const { place } = readAddress(tab.content.navigation.current);
    return place.page === 'experiment' ? place.id : null;
  }

  /** Open the page of an experiment, or bring it to the front. */
  openExperiment(id: ExperimentId): void {
    const known = this._find(tabId(experimentAddress(id)));
    if (known === undefined) {
      this.open(experimentAddress(id));
    } else {
      this._app.shell.activateById(known.id); // on the page where the user left it
    }
  }

  /** Open an address in its tab, and bring that to the front. */
  open(address: string = HOME): void {
    const known = this._find(tabId(address));
    if (known !== undefined) {
      known.content.navigation.open(address);
      this._app.shell.activateById(known.id);
      return;
    }
    const navigation: TabNavigation = new TabNavigation(address, wanted => {
      if (tabId(wanted) === tabId(address)) {
        return false;
      }
      this.open(wanted);
      return true;
    });
    const tab = makeTab(this._host, navigation);
    this._app.shell.add(tab, 'main');
    void this._tracker.add(tab);
    navigation.subscribe(() => void this._tracker.save(tab));
    this._app.shell.activateById(tab.id);
  }

  /** Open again with JupyterLab's workspace what was open. */
  restoreBy(restorer: ILayoutRestorer): void {
    void restorer.restore(this._tracker, {
      command: CommandIds.workspace,
      args: tab => ({ address: tab.content.navigation.current }),
      name: tab => tab.id
    });
  }

  private _find(id: string): MainAreaWidget<WorkspaceWidget> | undefined {
    return this._tracker.find(tab => tab.id === id);
  }
}
