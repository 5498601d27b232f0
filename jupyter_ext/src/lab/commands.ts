/** The commands: in the palette, in the context menu of the list, and behind the buttons. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Action, Experiment, ExperimentId } from '../shared/model';
import { asExperimentId } from '../shared/paths';
import type { Transport } from '../shared/transport';
import { act, chooseExperiment, openExecuted, tell } from './actions';
import { runRoute } from './notebookRuns';
import { HOME } from '../workspace/app/address';
import { CommandIds } from './commandIds';
import { fits } from './fits';
import { experimentsIcon, submitIcon } from './icons';
import type { WorkspaceTabs } from './workspace/tabs';
import type { ExperimentsPanel } from './panel/panel';
import type { RunsWatch } from './panel/runsWatch';

const CATEGORY = 'det_native';

/** What the commands work on. */
export interface CommandContext {
  app: JupyterFrontEnd;
  notebooks: INotebookTracker;
  tabs: WorkspaceTabs;
  panel: ExperimentsPanel;
  runs: RunsWatch;
  transport: Transport;
  submit: (panel: NotebookPanel) => Promise<void>;
  start: () => Promise<void>;
}

/** Add all commands. */
export function addCommands(context: CommandContext): void {
  addNotebookCommands(context);
  addOpenCommand(context);
  addExecutedCommand(context);
  addAction(context, CommandIds.stop, 'stop', 'Stop experiment');
  addAction(context, CommandIds.pause, 'pause', 'Pause experiment');
  addAction(context, CommandIds.resume, 'resume', 'Resume experiment');
  addAction(context, CommandIds.kill, 'kill', 'Kill experiment');
}

/** Offer the commands in the palette. */
export function addToPalette(palette: ICommandPalette): void {
  for (const command of Object.values(CommandIds)) {
    palette.addItem({ command, category: CATEGORY });
  }
}

function addNotebookCommands({
  app,
  notebooks,
  panel,
  submit,
  start
}: CommandContext): void {
  // The button in a toolbar means its own notebook, which need not be the current one.
  const meant = ({
    panelId
  }: ReadonlyPartialJSONObject): NotebookPanel | null =>
    typeof panelId === 'string'
      ? (notebooks.find(({ id }) => id === panelId) ?? null)
      : notebooks.currentWidget;
  app.commands.addCommand(CommandIds.submit, {
    label: args => (args.panelId === undefined ? 'Submit notebook' : 'Submit'),
    caption: 'Run this notebook in the background, in a kernel of its own',
    icon: submitIcon,
    isEnabled: args => meant(args) !== null,
    execute: async args => {
      const notebook = meant(args);
      if (notebook !== null) {
        await tell(() => submit(notebook));
      }
    }
  });
  notebooks.currentChanged.connect(() =>
    app.commands.notifyCommandChanged(CommandIds.submit)
  );
  app.commands.addCommand(CommandIds.show, {
    label: 'Show experiments',
    caption: 'Show the panel of experiments',
    execute: () => app.shell.activateById(panel.id)
  });
  app.commands.addCommand(CommandIds.start, {
    label: 'Start a master',
    caption: 'Start the master of this machine, if none runs',
    execute: () => start()
  });
}

function addOpenCommand({ app, tabs, panel, transport }: CommandContext): void {
  app.commands.addCommand(CommandIds.workspace, {
    label: args =>
      args.inLauncher ? 'Experiments' : 'Open the table of experiments',
    caption: 'All experiments in a table, models, queue and cluster',
    icon: args => (args.inLauncher ? experimentsIcon : undefined),
    execute: args =>
      tabs.open(typeof args.address === 'string' ? args.address : HOME)
  });
  app.commands.addCommand(CommandIds.open, {
    label: args => (args.fromPanel ? 'Open' : 'Open experiment…'),
    caption: 'Open the page of an experiment',
    execute: async args => {
      const id =
        givenId(args, panel) ??
        (await chooseExperiment(transport, 'Which experiment to open?'));
      if (id !== null) {
        tabs.openExperiment(id);
      }
    }
  });
}

function addExecutedCommand({
  app,
  panel,
  runs,
  transport
}: CommandContext): void {
  const wanted = () => runs.runOf(panel.activeExperiment?.id);
  app.commands.addCommand(CommandIds.executed, {
    label: 'Open executed notebook',
    caption: 'Open the notebook whose run has begun the experiment',
    isVisible: () => wanted() !== null,
    execute: async () => {
      const run = wanted();
      if (run !== null) {
        await openExecuted(app, transport, runRoute(run, 'open'));
      }
    }
  });
}

function addAction(
  { app, tabs, panel, transport }: CommandContext,
  command: string,
  action: Action,
  label: string
): void {
  const wanted = (experiment: Experiment) => fits(action, experiment);
  app.commands.addCommand(command, {
    label: args =>
      args.fromPanel ? (label.split(' ')[0] ?? label) : `${label}…`,
    caption: label,
    isVisible: args =>
      !args.fromPanel ||
      (panel.activeExperiment !== null && wanted(panel.activeExperiment)),
    execute: async args => {
      const id =
        givenId(args, panel) ??
        tabs.currentExperiment ??
        (await chooseExperiment(transport, `${label}: which one?`, wanted));
      if (id !== null) {
        await act(transport, id, action);
      }
    }
  });
}

function givenId(
  args: ReadonlyPartialJSONObject,
  panel: ExperimentsPanel
): ExperimentId | null {
  if (args.fromPanel) {
    return panel.activeExperiment?.id ?? null;
  }
  return asExperimentId(args.id);
}
