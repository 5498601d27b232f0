/** What can be done with an experiment. */

import { useRef, useState } from 'preact/hooks';

import type { Action } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { TEXTS } from '../../shared/texts';
import { experimentAddress } from '../app/address';
import { useParameter, useWorkspace } from '../app/context';
import { Button } from '../parts/button';
import { confirm } from '../parts/dialog';
import { Menu, type MenuItem } from '../parts/menu';
import { ContinueDialog } from './continueDialog';
import { DeleteDialog } from './deleteDialog';
import { ForkDialog } from './forkDialog';
import { MoveDialog } from './moveDialog';
import type { LiveExperiment } from './useExperiment';

const DONE: Readonly<Record<Action, string>> = {
  pause: 'Pausing: the workers write a checkpoint first.',
  resume: 'Resumed.',
  stop: 'Stopping: the workers write a checkpoint first.',
  kill: 'Killed.'
};

export function Actions({ live }: { live: LiveExperiment }) {
  const { host, toasts } = useWorkspace();
  const { view, feed, change } = live;
  const root = useRef<HTMLDivElement>(null);
  const [busy, setBusy] = useState(false);
  // In the address, so that a row of the table can lead here.
  const [opened, setOpened] = useParameter('dialog', '', { push: true });
  const { experiment, id } = view;
  if (experiment === null) {
    return null;
  }
  const { in_kernel: inKernel } = experiment;
  const { state } = experiment;
  const ended = isTerminal(state);
  const stopping = state.startsWith('STOPPING');

  const act = async (action: Action) => {
    setBusy(true);
    try {
      await feed.act(action);
      toasts.say(
        inKernel && action === 'stop'
          ? `Stopping: ${TEXTS.stopsHere}`
          : DONE[action]
      );
    } catch (error) {
      toasts.error(error);
    } finally {
      setBusy(false);
    }
  };
  const askFirst = async (action: 'stop' | 'kill') => {
    const stop = action === 'stop';
    const agreed = await confirm(root.current!, {
      title: stop ? `Stop experiment ${id}?` : `Kill experiment ${id}?`,
      body: stop
        ? TEXTS[inKernel ? 'confirmStopHere' : 'confirmStop']
        : TEXTS.confirmKill,
      action: stop ? 'Stop' : 'Kill',
      danger: true
    });
    if (agreed) {
      await act(action);
    }
  };
  const archive = async () => {
    try {
      await change({ archived: !experiment.archived });
      toasts.say(
        experiment.archived
          ? `Experiment ${id} is back in the list.`
          : `Experiment ${id} is archived.`
      );
    } catch (error) {
      toasts.error(error);
    }
  };
  const copyLink = async () => {
    const { href } = new URL(
      host.navigation.href(experimentAddress(id)),
      location.href
    );
    try {
      await navigator.clipboard.writeText(href);
      toasts.say('The link is copied.');
    } catch {
      toasts.error(new Error(`The browser does not copy here: ${href}`));
    }
  };

  const noProgram =
    experiment.bundle_id === null
      ? experiment.no_program || 'Its program was not kept with the master.'
      : undefined;
  const goesOn = ended ? undefined : 'It goes on: stop it first.';
  const items: MenuItem[] = [
    {
      label: 'Fork with changes…',
      icon: 'add',
      disabled: noProgram,
      onChoose: () => setOpened('fork')
    },
    {
      label: 'Continue…',
      icon: 'play',
      disabled:
        noProgram ??
        (view.checkpoints.length > 0 ? undefined : 'It has no checkpoint.'),
      onChoose: () => setOpened('continue')
    },
    {
      label: 'Move to project…',
      icon: 'forward',
      onChoose: () => setOpened('move')
    },
    { label: 'Copy link', icon: 'copy', onChoose: () => void copyLink() },
    {
      label: experiment.archived ? 'Take out of the archive' : 'Archive',
      icon: 'archive',
      disabled: goesOn,
      onChoose: () => void archive()
    },
    // What trains in a kernel is stopped there; a second way to end it says nothing more.
    ...(ended || stopping || inKernel
      ? []
      : [
          {
            label: 'Kill…',
            icon: 'close' as const,
            danger: true,
            onChoose: () => void askFirst('kill')
          }
        ]),
    {
      label: 'Delete…',
      icon: 'trash',
      danger: true,
      disabled: goesOn,
      onChoose: () => setOpened('delete')
    }
  ];
  const close = () => setOpened('', { push: false });
  return (
    <div ref={root} class="det-actions" role="group" aria-label="Actions">
      {!ended && !stopping && !inKernel && (
        <Button
          icon={state === 'PAUSED' ? 'play' : 'pause'}
          disabled={busy}
          onClick={() => void act(state === 'PAUSED' ? 'resume' : 'pause')}
        >
          {state === 'PAUSED' ? 'Resume' : 'Pause'}
        </Button>
      )}
      {!ended && !stopping && (
        <Button
          icon="stop"
          disabled={busy}
          onClick={() => void askFirst('stop')}
        >
          Stop
        </Button>
      )}
      {stopping && !inKernel && (
        <Button
          look="danger"
          disabled={busy}
          onClick={() => void askFirst('kill')}
        >
          Kill
        </Button>
      )}
      <Menu label="More actions" compact items={items} />
      {opened === 'fork' && <ForkDialog view={view} onClose={close} />}
      {opened === 'continue' && <ContinueDialog view={view} onClose={close} />}
      {opened === 'move' && (
        <MoveDialog
          id={id}
          project={experiment.project ?? ''}
          onClose={close}
          onMove={project => change({ project })}
        />
      )}
      {opened === 'delete' && <DeleteDialog id={id} onClose={close} />}
    </div>
  );
}
