/** The body of the submit dialog. */
import { Widget } from '@lumino/widgets';

import { button, make, prose, setText } from '../../shared/dom';
import { makeWaiting } from '../dom';
import {
  blockedText,
  type DialogEvent,
  type DialogModel,
  waitingText
} from './dialogModel';
import { ChoiceView } from './choiceView';
import {
  callText,
  masterText,
  type Remarks,
  remarks,
  summaryText
} from './summary';
import type { Inspection, ProblemInfo } from './inspection';

/** Shows the model; what the user does becomes events. */
export class DialogView extends Widget {
  private readonly _choice: ChoiceView;
  private readonly _status = make('div', 'det-Submit-status');
  /** Always there, so that nothing below it moves when the notebook is read again. */
  private readonly _line = make('div', 'det-Submit-line');
  private readonly _problems = make('div');
  private readonly _content = make('div', 'det-Submit-content');
  private _shownInspection: Inspection | null = null;
  /** Whether the details are unfolded; they stay so when the notebook is read again. */
  private _open = false;

  constructor(private readonly _send: (event: DialogEvent) => void) {
    super();
    this.addClass('det-Submit');
    this._choice = new ChoiceView(choice =>
      this._send({ type: 'chosen', choice })
    );
    this._status.setAttribute('aria-live', 'polite');
    this._status.append(this._line, this._problems);
    this.node.append(this._choice.element, this._status, this._content);
  }

  /** Show the dialog as it is now. */
  showModel(model: DialogModel): void {
    this._choice.show(model);
    const { place } = model.choice;
    const waiting = waitingText(model);
    if (waiting !== '') {
      this._line.replaceChildren(makeWaiting(waiting));
    } else {
      const { inspection } = model;
      setText(
        this._line,
        inspection ? summaryText(inspection, place, model.choice.test) : ''
      );
    }
    this._problems.replaceChildren(...this._problemParts(model));
    this.node.classList.toggle('det-mod-stale', model.phase === 'inspecting');
    if (
      model.inspection !== this._shownInspection ||
      this._content.dataset.place !== place
    ) {
      this._shownInspection = model.inspection;
      this._content.dataset.place = place;
      const { scrollTop } = this.node;
      this._content.replaceChildren(
        ...contentParts(model, this._open, isOpen => (this._open = isOpen))
      );
      this.node.scrollTop = scrollTop;
    }
  }

  /** What stands in the way; it stays while the notebook is read again. */
  private _problemParts(model: DialogModel): Node[] {
    if (model.refusal !== null) {
      const { message, remedy, problems, canRetry } = model.refusal;
      const retry = () => this._send({ type: 'retried' });
      return [
        make('p', 'det-Submit-error', {}, ...prose(message)),
        ...(remedy === '' ? [] : [make('p', '', {}, ...prose(remedy))]),
        ...problemList(problems),
        ...(canRetry
          ? [
              button(
                'jp-Button jp-mod-styled jp-mod-reject',
                'Try again',
                retry
              )
            ]
          : [])
      ];
    }
    const problems = model.inspection?.problems ?? [];
    if (problems.length > 0 && model.phase !== 'submitting') {
      const heading = make(
        'p',
        'det-Submit-error',
        {},
        blockedText(model.choice.place)
      );
      return [heading, ...problemList(problems)];
    }
    return [];
  }
}

function contentParts(
  model: DialogModel,
  open: boolean,
  onToggle: (open: boolean) => void
): Node[] {
  const { inspection } = model;
  if (inspection === null) {
    return [];
  }
  const { place } = model.choice;
  const details = make(
    'details',
    'det-Submit-details',
    {},
    make('summary', '', {}, 'Details'),
    make('p', '', {}, callText(inspection, place))
  );
  const master = place === 'cluster' ? masterText(inspection) : '';
  if (master !== '') {
    details.append(make('p', 'det-Submit-master', {}, ...prose(master)));
  }
  details.open = open;
  details.addEventListener('toggle', () => onToggle(details.open));
  return [...remarks(model).map(remarkGroup), details];
}

function problemList(problems: readonly ProblemInfo[]): Node[] {
  if (problems.length === 0) {
    return [];
  }
  const items = problems.map(({ where, what, remedy }) =>
    make(
      'li',
      '',
      {},
      ...(where ? [make('strong', '', {}, where), ' '] : []),
      ...prose(what),
      ...(remedy
        ? [make('div', 'det-Submit-remedy', {}, ...prose(remedy))]
        : [])
    )
  );
  return [make('ul', 'det-Submit-problems', {}, ...items)];
}

function remarkGroup({ kind, heading, lines }: Remarks): HTMLElement {
  const items = lines.map(line => make('li', '', {}, ...prose(line)));
  const list = make('ul', '', {}, ...items);
  const group = make(
    'div',
    'det-Submit-remarks',
    {},
    make('h3', '', {}, heading),
    list
  );
  group.dataset.kind = kind;
  return group;
}
