/** What commands do with experiments: which one is meant, and what is said when it is refused. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog, Notification } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { dataOf } from '../shared/api';
import { formatAgo } from '../shared/format';
import type { Action, Experiment, ExperimentId } from '../shared/model';
import type { ExtensionRoute } from '../shared/paths';
import { actOn } from '../shared/requests';
import { experimentStateText, TEXTS } from '../shared/texts';
import { RequestError, type Transport } from '../shared/transport';
import { confirmEnd } from './confirm';
import { cellText, type NotebookRun } from './notebookRuns';

const MOST_CHOICES = 200;

/** Ask the master for something; a refusal is shown. */
export async function act(
  transport: Transport,
  experimentId: ExperimentId,
  action: Action
): Promise<void> {
  if (action === 'stop' && !(await confirmEnd(TEXTS.confirmStop, 'Stop'))) {
    return;
  }
  if (action === 'kill' && !(await confirmEnd(TEXTS.confirmKill, 'Kill'))) {
    return;
  }
  await tell(async () => {
    await actOn(transport.api, experimentId, action);
  });
}

/** Have the server write an executed notebook where it can be opened, and open it; one that is open is loaded anew. */
export async function openExecuted(
  { commands }: JupyterFrontEnd,
  transport: Transport,
  route: Extract<ExtensionRoute, `${string}/open`>
): Promise<void> {
  await tell(async () => {
    const { path } = await transport.post<{ path: string }>(route);
    const opened = (await commands.execute('docmanager:open', { path })) as
      NotebookPanel | undefined;
    await opened?.context.ready;
    if (opened && !opened.context.model.dirty) {
      await opened.context.revert();
    }
  });
}

/** Stop a run of a notebook, if the user means it. */
export async function stopRun(
  transport: Transport,
  run: NotebookRun
): Promise<void> {
  const question = `Its kernel ends after ${cellText(run)}, and experiments that it waits for are stopped.`;
  if (await confirmEnd(question, 'Stop', `run ${run.id}`)) {
    await tell(() => transport.post(`notebook-runs/${run.id}/stop`));
  }
}

/** Let the user choose among experiments; null if there is none, or nothing was chosen. */
export async function chooseExperiment(
  transport: Transport,
  title: string,
  wanted: (experiment: Experiment) => boolean = () => true
): Promise<ExperimentId | null> {
  const found: Experiment[] = [];
  await tell(async () => {
    const params = { query: { limit: MOST_CHOICES } };
    const known = await dataOf(
      transport.api.GET('/api/v1/experiments', { params })
    );
    found.push(...known.filter(wanted));
    if (found.length === 0) {
      Notification.info('There is no such experiment.', { autoClose: 4000 });
    }
  });
  if (found.length === 0) {
    return null;
  }
  const items = found.map(experimentLine);
  const { button, value } = await InputDialog.getItem({
    title,
    items,
    current: 0
  });
  const chosen =
    button.accept && value !== null ? found[items.indexOf(value)] : undefined;
  return chosen?.id ?? null;
}

/** Do something; what goes wrong is told in words. */
export async function tell(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const remedy = error instanceof RequestError ? error.remedy : '';
    Notification.error(`${message} ${remedy}`.trim());
  }
}

function experimentLine(experiment: Experiment): string {
  const { word } = experimentStateText(experiment);
  return `${experiment.id}: ${experiment.name} (${word}, ${formatAgo(experiment.created)})`;
}
