/** The body of the submit dialog: the line that says what will happen, and the choices. */
import { Widget } from '@lumino/widgets';

import { make, prose, setText } from '../../shared/dom';
import {
  type Choice,
  type DialogEvent,
  type DialogModel,
  lineOf,
  type Place,
  remarksOf,
  slotsProblem
} from './dialogModel';

const PLACES: Readonly<Record<Place, string>> = {
  '': 'As the cells say',
  cluster: 'On the cluster',
  local: 'On this machine, in its kernel',
  kernel: 'In the open kernel instead'
};

/** Shows the model; what the user does becomes events. */
export class DialogView extends Widget {
  private readonly _line = make('p', 'det-Submit-line');
  private readonly _remarks = make('div', 'det-Submit-remarks');
  private readonly _error = make('div', 'det-Submit-error', { role: 'alert' });
  private readonly _places = make('fieldset');
  private readonly _rest = make('fieldset', 'det-Choice-rest');
  private readonly _slots = make('input', 'jp-mod-styled', {
    type: 'number',
    min: '1',
    step: '1',
    'aria-describedby': 'det-choice-problem'
  });
  private readonly _slotsOf = make('span', 'det-Choice-hint');
  private readonly _problem = make('div', 'det-Choice-problem', {
    id: 'det-choice-problem',
    role: 'alert'
  });
  private readonly _parameters = make('div', 'det-Choice-parameters');

  constructor(private readonly _send: (event: DialogEvent) => void) {
    super();
    this.addClass('det-Submit');
    this._line.setAttribute('aria-live', 'polite');
    this._slots.addEventListener('input', () => {
      const { value } = this._slots;
      this._choose({ slots: value === '' ? null : Number(value) });
    });
    this._places.append(make('legend', '', {}, 'Where to train'));
    for (const place of Object.keys(PLACES) as Place[]) {
      this._places.append(this._makePlace(place));
    }
    this._rest.append(
      make(
        'label',
        'det-Choice-slots',
        {},
        'Slots for each trial (empty: as configured) ',
        this._slots,
        this._slotsOf
      ),
      this._problem,
      this._parameters,
      this._makeCheck('test', 'Only test: one minimal loop of each training'),
      this._makeCheck('beside', 'Save the executed notebook beside this one')
    );
    const form = make('div', 'det-Choice', {}, this._places, this._rest);
    this.node.append(this._line, this._remarks, this._error, form);
  }

  /** Show the dialog as it is now; what the user is typing is left alone. */
  showModel(model: DialogModel): void {
    const { choice, facts } = model;
    const busy = model.phase !== 'ready';
    setText(this._line, lineOf(model));
    paragraphs(this._remarks, remarksOf(model));
    paragraphs(this._error, model.refusal);
    this._places.disabled = busy;
    this._rest.disabled = busy || choice.place === 'kernel';
    for (const input of this._places.querySelectorAll('input')) {
      input.checked = input.value === choice.place;
      const isOpen = input.value !== 'kernel' || facts.first !== null;
      input.closest('label')!.hidden = !isOpen;
    }
    const { slotsOffered: offered, slotKinds } = model;
    this._slots.max = offered === null ? '' : String(offered);
    setText(
      this._slotsOf,
      offered === null
        ? ''
        : `of ${offered}${slotKinds === '' ? '' : `: ${slotKinds}`}`
    );
    const problem = slotsProblem(model);
    setText(this._problem, problem);
    this._problem.hidden = problem === '';
    this._slots.setAttribute('aria-invalid', String(problem !== ''));
    this._showParameters(model.description?.parameters ?? {});
  }

  /** A field for each name of the tagged cell; made once, when they are known. */
  private _showParameters(parameters: Readonly<Record<string, string>>): void {
    const names = Object.keys(parameters);
    this._parameters.hidden = names.length === 0;
    if (this._parameters.childElementCount > 0 || names.length === 0) {
      return;
    }
    const typed: Record<string, string> = {};
    for (const name of names) {
      const input = make('input', 'jp-mod-styled', { spellcheck: 'false' });
      input.value = parameters[name] ?? '';
      input.addEventListener('input', () => {
        typed[name] = input.value;
        const changed = Object.entries(typed).filter(
          ([each, text]) => text.trim() !== parameters[each]
        );
        this._choose({ parameters: Object.fromEntries(changed) });
      });
      this._parameters.append(make('label', '', {}, name, input));
    }
  }

  private _choose(choice: Partial<Choice>): void {
    this._send({ type: 'chosen', choice });
  }

  private _makePlace(place: Place): HTMLElement {
    const input = make('input', '', {
      type: 'radio',
      name: 'det-place',
      value: place
    });
    input.addEventListener('change', () => this._choose({ place }));
    return make('label', '', {}, input, ` ${PLACES[place]}`);
  }

  private _makeCheck(name: 'test' | 'beside', text: string): HTMLElement {
    const input = make('input', '', { type: 'checkbox' });
    input.addEventListener('change', () =>
      this._choose({ [name]: input.checked })
    );
    return make('label', '', {}, input, ` ${text}`);
  }
}

function paragraphs(element: HTMLElement, texts: readonly string[]): void {
  const key = JSON.stringify(texts);
  if (element.dataset.key !== key) {
    element.dataset.key = key;
    element.replaceChildren(
      ...texts.map(text => make('p', '', {}, ...prose(text)))
    );
  }
  element.hidden = texts.length === 0;
}
