/** What the side panel shows: always something, in words, with a button where one helps. Pure. */
import { formatClock, formatCount } from '../../shared/format';
import type { ListView } from '../../shared/listFeed';
import type { Connection, Experiment, MasterStatus } from '../../shared/model';
import { experimentStateText, masterText, TEXTS } from '../../shared/texts';
import type { Slots } from './slots';

/** A button of the panel. */
export type PanelAction = 'start' | 'retry' | 'reload' | 'submit';

/** A text in place of the list. */
export interface Message {
  kind: 'message';
  title: string;
  body: string;
  action: PanelAction | null;
  /** Something is under way: it turns. */
  busy: boolean;
  tone: 'calm' | 'problem';
}

/** The list, with a notice above it while the master does not answer. */
export interface Listing {
  kind: 'list';
  experiments: readonly Experiment[];
  /** What is said of those that are not in it; empty for nothing. */
  others: string;
  notice: { text: string; action: PanelAction } | null;
  /** The list is as it was when the connection was lost. */
  stale: boolean;
}

/** One screen of the panel. */
export type Screen = Message | Listing;

type Lost = Extract<Connection, { kind: 'lost' }>;

/** Words on the buttons. */
export const ACTION_LABELS: Readonly<Record<PanelAction, string>> = {
  start: TEXTS.start,
  retry: 'Try again',
  reload: 'Reload the page',
  submit: 'Submit this notebook'
};

/**
 * The screen that fits what is known.
 *
 * @param view - What the feed knows.
 * @param version - Version of this front end.
 */
export function screenOf(view: ListView, version: string): Screen {
  const { status, experiments, connection } = view;
  if (status !== null && status.version !== '' && status.version !== version) {
    return differentVersions(version, status.version);
  }
  const lost = connection.kind === 'lost' ? connection : null;
  if (experiments.length > 0) {
    return {
      kind: 'list',
      experiments,
      others: othersText(view.others ?? 0),
      notice: lost && lostNotice(lost, status),
      stale: lost !== null
    };
  }
  if (connection.kind === 'live') {
    return EMPTY;
  }
  if (status !== null && status.state !== 'running') {
    return masterMessage(status);
  }
  return lost === null ? LOOKING : lostMessage(lost);
}

/** What the header says of the master in few words; empty where the rest of the panel says it. */
export function headerText(
  view: ListView,
  slots: (Pick<Slots, 'busy' | 'all'> & Partial<Slots>) | null
): string {
  if (view.connection.kind !== 'live' || view.status === null) {
    return '';
  }
  // A slot is told busy a moment after its experiment runs, and one in a kernel has none: "0 busy" would contradict the list.
  const runs = view.experiments.some(
    experiment => experimentStateText(experiment).word === 'Running'
  );
  if (slots === null || (runs && slots.busy === 0)) {
    return masterText(view.status).title;
  }
  const busy = `${slots.busy} of ${slots.all} ${slots.all === 1 ? 'slot' : 'slots'} busy`;
  return ['Master running', busy, slots.gpus].filter(Boolean).join(' · ');
}

function othersText(count: number): string {
  return count === 0
    ? ''
    : `${formatCount(count)} older ${count === 1 ? 'experiment is' : 'experiments are'} under “All experiments”.`;
}

const LOOKING: Message = {
  kind: 'message',
  title: 'Looking for the master',
  body: '',
  action: null,
  busy: true,
  tone: 'calm'
};

const EMPTY: Message = {
  kind: 'message',
  title: 'No experiments yet',
  body:
    'In a notebook, import det_native, call its init(), and then fit() as ever. ' +
    'Or open a notebook that does, and press Submit in its toolbar.',
  action: 'submit',
  busy: false,
  tone: 'calm'
};

function masterMessage(status: MasterStatus): Message {
  const { title, body } = masterText(status);
  const isStarting = status.state === 'starting';
  const isCalm = isStarting || status.state === 'none';
  return {
    kind: 'message',
    title,
    body: isStarting ? status.remedy : body, // the message is the title's
    action: actionFor(status),
    busy: isStarting,
    tone: isCalm ? 'calm' : 'problem'
  };
}

function actionFor(status: MasterStatus): PanelAction | null {
  if (status.state === 'starting') {
    return null;
  }
  return status.state === 'none' && status.can_start ? 'start' : 'retry';
}

function differentVersions(page: string, server: string): Message {
  return {
    kind: 'message',
    title: 'Versions do not match',
    body:
      `This page has det_native ${page}, the Jupyter server has ${server}. Reload the page. ` +
      'If this text stays, start JupyterLab again.',
    action: 'reload',
    busy: false,
    tone: 'problem'
  };
}

function lostMessage(lost: Lost): Message {
  return {
    kind: 'message',
    title:
      lost.state === 'absent'
        ? 'Not installed completely'
        : 'The connection is lost',
    body: `${lost.message} ${lost.remedy}`.trim(),
    action: 'retry',
    busy: false,
    tone: 'problem'
  };
}

function lostNotice(
  lost: Lost,
  status: MasterStatus | null
): Listing['notice'] {
  const since = `Connection lost since ${formatClock(lost.since)}.`;
  const reason = lost.message.replace(/\.?$/, '.');
  return {
    text: [since, reason, lost.remedy, 'The list is as it was then.']
      .filter(part => part !== '')
      .join(' '),
    action: status?.state === 'none' && status.can_start ? 'start' : 'retry'
  };
}
