/** The side panel: the experiments of the master and of this machine, live while it is seen. */
import { refreshIcon } from '@jupyterlab/ui-components';
import type { Message as LuminoMessage } from '@lumino/messaging';
import { PanelLayout, Widget } from '@lumino/widgets';

import { button, make, prose, setText } from '../../shared/dom';
import type { ExperimentListFeed } from '../../shared/listFeed';
import type { Experiment, ExperimentId } from '../../shared/model';
import { makeWaiting } from '../dom';
import { Presence } from '../presence';
import { changesOf } from './changes';
import { ExperimentList } from './list';
import { rowOf } from './rows';
import { type RunActions, RunsView } from './runsView';
import { listedRuns, type RunsWatch } from './runsWatch';
import {
  ACTION_LABELS,
  headerText,
  type Message,
  type PanelAction,
  screenOf
} from './screen';
import type { SlotsWatch } from './slots';

/** Times such as "5 min ago" are renewed this often. */
const CLOCK_MILLISECONDS = 30_000;

/** What the panel shows and calls. */
export interface PanelOptions {
  feed: ExperimentListFeed;
  slots: SlotsWatch;
  runs: RunsWatch;
  onRun: Omit<RunActions, 'onExperiment'>;
  version: string;
  onOpen: (experimentId: ExperimentId) => void;
  /** Open the table of all experiments. */
  onOpenAll: () => void;
  onSubmit: () => void;
  /** Whether there is a notebook to submit. */
  canSubmit: () => boolean;
  onStart: () => Promise<void>;
}

/** The side panel. */
export class ExperimentsPanel extends Widget {
  private readonly _presence: Presence;
  private readonly _list: ExperimentList;
  private readonly _master = make('p', 'det-Panel-master');
  private readonly _runs: RunsView;
  private readonly _notice = make('div', 'det-Panel-notice');
  private readonly _message = make('div', 'det-Panel-message');
  private readonly _others = make('p', 'det-Panel-others');
  private readonly _unsubscribe: () => void;
  private _shownMessage = '';
  private _frame = 0;
  private _clock: ReturnType<typeof setInterval> | null = null;

  constructor(private readonly _options: PanelOptions) {
    super();
    this.addClass('det-Panel');
    this._list = new ExperimentList({
      label: 'Experiments',
      onOpen: _options.onOpen
    });
    this._runs = new RunsView({
      ..._options.onRun,
      onExperiment: _options.onOpen
    });
    this._master.setAttribute('role', 'status');
    this._notice.setAttribute('role', 'alert');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Experiments of det_native');
    const layout = new PanelLayout();
    this.layout = layout;
    layout.addWidget(this._list);
    this.node.prepend(
      this._makeHeader(),
      this._master,
      this._runs.element,
      this._notice,
      this._message
    );
    this.node.append(this._others);
    this._presence = new Presence(seen => this._seenChanged(seen));
    this._unsubscribe = _options.feed.subscribe(() => this._drawSoon());
    _options.slots.onChange = () => this._drawSoon();
    _options.runs.onChange = () => this._drawSoon();
  }

  /** The experiment that the keyboard or the pointer chose last. */
  get activeExperiment(): Experiment | null {
    const id = this._list.activeId;
    return (
      this._options.feed.view.experiments.find(
        experiment => experiment.id === id
      ) ?? null
    );
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._presence.setShown(false);
      this._presence.dispose();
      this._unsubscribe();
      cancelAnimationFrame(this._frame);
    }
    super.dispose();
  }

  protected override onAfterShow(_: LuminoMessage): void {
    this._presence.setShown(true);
  }

  protected override onBeforeHide(_: LuminoMessage): void {
    this._presence.setShown(false);
  }

  protected override onAfterAttach(_: LuminoMessage): void {
    this._presence.setShown(this.isVisible);
  }

  protected override onBeforeDetach(_: LuminoMessage): void {
    this._presence.setShown(false);
  }

  protected override onActivateRequest(_: LuminoMessage): void {
    this.focus();
  }

  /** Put the keyboard into the list, or on the button that stands in its place. */
  focus(): void {
    const target = this._list.isHidden
      ? this._message.querySelector('button')
      : null;
    (target ?? this._list.element).focus();
  }

  private _makeHeader(): HTMLElement {
    const refresh = button(
      'jp-Button jp-mod-minimal det-Panel-refresh',
      '',
      () => this._options.feed.refresh()
    );
    refresh.append(
      refreshIcon.element({ tag: 'span', stylesheet: 'toolbarButton' })
    );
    const all = button('det-Panel-all', 'All experiments', () =>
      this._options.onOpenAll()
    );
    all.title = 'Table of all experiments, models, queue and cluster';
    refresh.title = 'Refresh';
    refresh.setAttribute('aria-label', 'Refresh the list of experiments');
    return make(
      'div',
      'det-Panel-header',
      {},
      make('h2', '', {}, 'Experiments'),
      make('div', 'det-Panel-tools', {}, all, refresh)
    );
  }

  private _seenChanged(seen: boolean): void {
    this._options.runs.setSeen(seen);
    if (seen) {
      this._options.feed.resume();
      this._clock = setInterval(() => this._drawSoon(), CLOCK_MILLISECONDS);
    } else {
      this._options.feed.pause();
      // A hidden tab draws nothing, so the slots would not hear of it.
      this._options.slots.follow(this._options.feed.view, false);
      if (this._clock !== null) {
        clearInterval(this._clock);
      }
    }
    this._drawSoon();
  }

  private _drawSoon(): void {
    if (this._frame === 0) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._draw();
      });
    }
  }

  private _draw(): void {
    const { feed, slots, runs, version } = this._options;
    const screen = screenOf(feed.view, version);
    slots.follow(feed.view, this._presence.seen);
    runs.follow(feed.view.experiments[0]?.id);
    this._runs.show(listedRuns(runs.runs, Date.now()));
    const master = headerText(feed.view, slots.found);
    setText(this._master, master);
    this._master.title = slots.found?.lines ?? '';
    this._master.hidden = master === '';
    this._list.setHidden(screen.kind !== 'list');
    this._message.hidden = screen.kind !== 'message';
    this._notice.hidden = screen.kind !== 'list' || screen.notice === null;
    setText(this._others, screen.kind === 'list' ? screen.others : '');
    this._others.hidden = this._others.textContent === '';
    if (screen.kind === 'message') {
      this._drawMessage(screen);
      return;
    }
    this._shownMessage = '';
    this._list.element.classList.toggle('det-mod-stale', screen.stale);
    this._drawNotice(screen.notice);
    const now = Date.now();
    const changes = changesOf(screen.experiments);
    this._list.setRows(
      screen.experiments.map(experiment =>
        rowOf(experiment, now, changes.get(experiment.id))
      )
    );
  }

  private _drawMessage(screen: Message): void {
    const action =
      screen.action === 'submit' && !this._options.canSubmit()
        ? null
        : screen.action;
    const key = JSON.stringify([screen, action]);
    if (key === this._shownMessage) {
      return; // what has the focus must not be made anew
    }
    this._shownMessage = key;
    const hadFocus = this._message.contains(document.activeElement);
    const title = screen.busy
      ? makeWaiting(screen.title)
      : make('h3', '', {}, screen.title);
    this._message.replaceChildren(
      title,
      make('p', '', {}, ...prose(screen.body))
    );
    this._message.dataset.tone = screen.tone;
    if (action !== null) {
      this._message.append(this._makeAction(action, 'jp-mod-accept'));
    }
    if (hadFocus) {
      (this._message.querySelector('button') ?? this.node).focus();
    }
  }

  private _drawNotice(
    notice: { text: string; action: PanelAction } | null
  ): void {
    const key = notice === null ? '' : notice.text + notice.action;
    if (this._notice.dataset.key === key) {
      return;
    }
    this._notice.dataset.key = key;
    this._notice.replaceChildren();
    if (notice !== null) {
      this._notice.append(
        make('p', '', {}, ...prose(notice.text)),
        this._makeAction(notice.action, '')
      );
    }
  }

  private _makeAction(
    action: PanelAction,
    className: string
  ): HTMLButtonElement {
    const actions: Record<PanelAction, () => void> = {
      start: () => void this._options.onStart(),
      retry: () => this._options.feed.refresh(),
      reload: () => window.location.reload(),
      submit: this._options.onSubmit
    };
    return button(
      `jp-Button jp-mod-styled ${className}`.trim(),
      ACTION_LABELS[action],
      actions[action]
    );
  }
}
