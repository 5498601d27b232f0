/** det_native in JupyterLab: a panel of experiments, their pages, and sending a notebook. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  ISessionContextDialogs,
  IToolbarWidgetRegistry
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { CommandToolbarButton } from '@jupyterlab/ui-components';

import { ExperimentListFeed } from '../shared/listFeed';
import type { Transport } from '../shared/transport';
import { openExecuted, stopRun, tell } from './actions';
import { addCommands, addToPalette } from './commands';
import { CommandIds } from './commandIds';
import { EndNotices } from './endNotices';
import { experimentsIcon } from './icons';
import { CheckpointLoader } from './notebook/load';
import { ExecutionTracker } from './notebook/tracking';
import { ServerViews } from './output/serverViews';
import { addViewOutput } from './output/viewOutput';
import { ExperimentsPanel } from './panel/panel';
import { RunsWatch } from './panel/runsWatch';
import { SlotsWatch } from './panel/slots';
import { type SubmitContext, submitNotebook } from './submission/submit';
import { showNotice } from './showNotice';
import { labTransport } from './transport';
import { VERSION } from './version';
import { askedAddress, withoutAsked } from './workspace/asked';
import { downloadFrom } from '../shared/download';
import { WorkspaceTabs } from './workspace/tabs';

const PANEL_RANK = 600;
const LAUNCHER_RANK = 10;

const plugin: JupyterFrontEndPlugin<void> = {
  id: '@det-native/labext:plugin',
  description:
    'Experiments of det_native: a panel, their pages, and submitting a notebook.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [
    ILayoutRestorer,
    ICommandPalette,
    IToolbarWidgetRegistry,
    ISessionContextDialogs,
    ILauncher
  ],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    toolbars: IToolbarWidgetRegistry | null,
    dialogs: ISessionContextDialogs | null,
    launcher: ILauncher | null
  ) => {
    const { serverSettings } = app.serviceManager;
    const transport = labTransport(serverSettings);
    const executions = new ExecutionTracker(notebooks);
    const loader = new CheckpointLoader(app, notebooks, executions);
    const tabs = new WorkspaceTabs(app, {
      transport,
      download: downloadFrom(transport),
      loadIntoNotebook: (experimentId, checkpoint) =>
        tell(() => loader.load({ experimentId, checkpoint })),
      openNotebook: id =>
        openExecuted(app, transport, `experiments/${id}/notebook/open`),
      notebookCells: () => codeOf(notebooks.currentWidget)
    });
    const submission: SubmitContext = {
      transport,
      executions,
      contents: app.serviceManager.contents,
      kernelspecs: () => app.serviceManager.kernelspecs.specs,
      dialogs: dialogs ?? undefined,
      onRun: () => {
        app.shell.activateById(panel.id);
        void runs.ask();
      }
    };
    const feed = new ExperimentListFeed(transport);
    const start = () => tell(() => feed.start());
    const notices = new EndNotices(notice =>
      showNotice(notice, id => tabs.openExperiment(id))
    );
    feed.subscribe(view => notices.take(view));
    const runs = new RunsWatch(transport);
    const panel = makePanel(app, notebooks, feed, runs, transport, start);
    app.shell.add(panel, 'left', { rank: PANEL_RANK });
    app.contextMenu.menu.aboutToClose.connect(() => {
      // A menu takes the keyboard, and leaves it to nobody.
      if (app.contextMenuHitTest(node => node === panel.node)) {
        panel.focus();
      }
    });
    const submit = (notebook: NotebookPanel) =>
      submitNotebook(notebook, submission);
    addCommands({
      app,
      notebooks,
      tabs,
      panel,
      runs,
      transport,
      submit,
      start
    });
    restorer?.add(panel, panel.id);
    if (restorer !== null) {
      tabs.restoreBy(restorer);
    }
    const asked = askedAddress(window.location.search);
    if (asked !== null) {
      void app.restored.then(() => {
        tabs.open(asked);
        // The tab is kept with JupyterLab's layout; the address bar would open it again after it was closed.
        const { history, location } = window;
        history.replaceState(history.state, '', withoutAsked(location.href));
      });
    }
    launcher?.add({
      command: CommandIds.workspace,
      args: { inLauncher: true },
      category: 'Other',
      rank: LAUNCHER_RANK
    });
    if (palette !== null) {
      addToPalette(palette);
    }
    toolbars?.addFactory<NotebookPanel>(
      'Notebook',
      'det-native-submit',
      ({ id }) => makeSubmitButton(app, id)
    );
  }
};

function makePanel(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  feed: ExperimentListFeed,
  runs: RunsWatch,
  transport: Transport,
  onStart: () => Promise<void>
): ExperimentsPanel {
  const panel = new ExperimentsPanel({
    feed,
    slots: new SlotsWatch(transport),
    runs,
    onRun: {
      onOpen: ({ id }) =>
        void openExecuted(app, transport, `notebook-runs/${id}/open`),
      onStop: run => void stopRun(transport, run).then(() => runs.ask())
    },
    version: VERSION,
    onOpen: id => void app.commands.execute(CommandIds.open, { id }),
    onOpenAll: () => void app.commands.execute(CommandIds.workspace),
    onSubmit: () => void app.commands.execute(CommandIds.submit),
    canSubmit: () => notebooks.currentWidget !== null,
    onStart
  });
  panel.id = 'det-native-experiments';
  panel.title.icon = experimentsIcon;
  panel.title.caption = 'Experiments (det_native)';
  return panel;
}

/** Text of the code cells of a notebook, from top to bottom. */
function codeOf(notebook: NotebookPanel | null): string[] | null {
  const cells = notebook?.model?.cells;
  return cells
    ? Array.from(cells)
        .filter(cell => cell.type === 'code')
        .map(cell => cell.sharedModel.getSource())
    : null;
}

function makeSubmitButton(
  { commands }: JupyterFrontEnd,
  panelId: string
): CommandToolbarButton {
  const id = CommandIds.submit;
  const button = new CommandToolbarButton({
    commands,
    id,
    args: { panelId },
    label: 'Submit'
  });
  button.addClass('det-SubmitButton');
  return button;
}

/** Apart from the rest, because outputs of a notebook that is restored may be drawn before all else is there. */
const output: JupyterFrontEndPlugin<void> = {
  id: '@det-native/labext:output',
  description:
    'Live views of det_native below a cell; what was saved of them where no kernel runs.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  activate: (app: JupyterFrontEnd, registry: IRenderMimeRegistry) => {
    const { serverSettings } = app.serviceManager;
    addViewOutput(registry, new ServerViews(labTransport(serverSettings)));
  }
};

export default [plugin, output];
