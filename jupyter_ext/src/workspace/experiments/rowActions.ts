/** The menu of an experiment in the table. */

import type { ExperimentId } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { TEXTS } from '../../shared/texts';
import { addressText, experimentAddress } from '../app/address';
import type { Navigation } from '../app/host';
import type { MenuItem } from '../parts/menu';
import type { Toasts } from '../parts/toasts';
import type { Row } from './rows';
import { type Bulk, WORDS } from './useBulk';

export interface RowContext {
  readonly navigation: Navigation;
  readonly toasts: Toasts;
  readonly bulk: Bulk;
}

/** What can be done with an experiment; what cannot says why. */
export function rowActions(
  id: ExperimentId,
  row: Row | undefined,
  { navigation, toasts, bulk }: RowContext
): MenuItem[] {
  const { actions } = bulk;
  const experiment = row?.experiment;
  const ended = experiment !== undefined && isTerminal(experiment.state);
  const paused = experiment?.state === 'PAUSED';
  const over = ended ? 'It has ended.' : undefined;
  const act = (action: 'stop' | 'pause' | 'resume') =>
    void bulk.run(WORDS[action], [id], each => actions.act(each, action));
  const archived = experiment?.archived === true;
  const fork = addressText(
    { page: 'experiment', id, tab: 'overview' },
    { dialog: 'fork' }
  );
  return [
    {
      label: 'Open',
      icon: 'forward',
      onChoose: () => navigation.open(experimentAddress(id))
    },
    {
      label: 'Copy link',
      icon: 'copy',
      onChoose: () =>
        void copyLink(navigation.href(experimentAddress(id)), toasts)
    },
    paused
      ? {
          label: 'Resume',
          icon: 'play',
          disabled: over,
          onChoose: () => act('resume')
        }
      : {
          label: 'Pause',
          icon: 'pause',
          disabled: over ?? (experiment?.in_kernel ? TEXTS.noPause : undefined),
          onChoose: () => act('pause')
        },
    {
      label: 'Stop',
      icon: 'stop',
      disabled: over,
      onChoose: () => act('stop')
    },
    {
      label: 'Fork with changes…',
      icon: 'edit',
      disabled:
        experiment?.bundle_id === null
          ? 'Its program was not kept.'
          : undefined,
      onChoose: () => navigation.open(fork)
    },
    {
      label: archived ? 'Unarchive' : 'Archive',
      icon: 'archive',
      disabled: ended ? undefined : 'It goes on.',
      onChoose: () =>
        void bulk.run(archived ? WORDS.unarchive : WORDS.archive, [id], each =>
          actions.change(each, { archived: !archived })
        )
    },
    {
      label: 'Delete…',
      icon: 'trash',
      danger: true,
      disabled: ended ? undefined : 'It goes on.',
      onChoose: () => void bulk.remove([id])
    }
  ];
}

async function copyLink(href: string, toasts: Toasts): Promise<void> {
  const link = new URL(href, location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    toasts.say('The link is copied.');
  } catch {
    toasts.say(`The browser does not let this page copy. The link: ${link}`);
  }
}
