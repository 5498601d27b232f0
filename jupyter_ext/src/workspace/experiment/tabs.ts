/** Which tabs an experiment's page has, and why some are left out. Pure. */

import type { ExperimentView } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { experimentAddress, type Tab, TABS } from '../app/address';
import type { TabInfo } from '../parts/tabs';

const LABELS: Readonly<Record<Tab, string>> = {
  overview: 'Overview',
  trials: 'Trials',
  charts: 'Charts',
  search: 'Search',
  checkpoints: 'Checkpoints',
  code: 'Code',
  configuration: 'Configuration',
  files: 'Files',
  logs: 'Logs',
  system: 'System',
  notes: 'Notes',
  report: 'Report'
};

/** Why a tab has nothing to show, for who comes by its address; null where it has. */
export function missingTab(view: ExperimentView, tab: Tab): string | null {
  const { experiment } = view;
  if (experiment === null) {
    return null; // not known yet
  }
  const ended = isTerminal(experiment.state);
  switch (tab) {
    case 'search':
      return isSearch(view)
        ? null
        : 'There is one trial only, so nothing was searched.';
    case 'code':
      return experiment.bundle_id === null
        ? experiment.no_program || 'No program was sent for this experiment.'
        : null;
    case 'checkpoints':
      return ended && view.checkpoints.length === 0
        ? 'This experiment has saved no checkpoint.'
        : null;
    case 'files':
      return ended && view.outputs !== null && !hasFiles(view)
        ? 'The training wrote no files.'
        : null;
    case 'system':
      return ended && view.system !== null && view.system.samples.length === 0
        ? 'Nothing is known of the machine’s load.'
        : null;
    case 'report':
      return (experiment.report ?? []).length === 0
        ? 'Nothing was sent along.'
        : null;
    case 'overview':
    case 'trials':
    case 'charts':
    case 'configuration':
    case 'logs':
    case 'notes':
      return null;
  }
}

/** The tabs that have something to show. */
export function tabsOf(view: ExperimentView): TabInfo[] {
  return TABS.filter(tab => missingTab(view, tab) === null).map(tab => {
    const count = countOf(view, tab);
    return {
      name: tab,
      label: LABELS[tab],
      address: experimentAddress(view.id, tab),
      ...(count === null ? {} : { count })
    };
  });
}

/** Whether several trials were compared, or will be. */
export function isSearch(view: ExperimentView): boolean {
  return Math.max(view.trials.length, view.experiment?.trials ?? 0) > 1;
}

function hasFiles({ outputs, trials }: ExperimentView): boolean {
  // The files of other trials are asked for when they are looked at.
  return trials.length > 1 || (outputs?.files.length ?? 0) > 0;
}

function countOf(view: ExperimentView, tab: Tab): number | null {
  if (view.experiment === null) {
    return null;
  }
  if (tab === 'trials') {
    return view.trials.length;
  }
  return tab === 'checkpoints'
    ? view.checkpoints.filter(({ state }) => state === 'COMPLETED').length
    : null;
}
