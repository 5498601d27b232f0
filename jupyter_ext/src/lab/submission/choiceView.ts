/** Where to train, on how many slots, and whether only to test: the questions of the submit dialog. */
import { make, setText } from '../../shared/dom';
import { type Choice, type DialogModel, slotsProblem } from './dialogModel';
import type { Place } from './inspection';
import { choiceText } from './summary';

const PLACES: Readonly<Record<Place, string>> = {
  cluster: 'On the cluster',
  here: 'Here, in the kernel of this notebook'
};

/** The form of the dialog. */
export class ChoiceView {
  readonly element = make('div', 'det-Choice');
  private readonly _places: ReadonlyMap<Place, HTMLInputElement>;
  private readonly _call = make('select', 'det-select');
  private readonly _slots = make('input', 'jp-mod-styled');
  private readonly _slotsOf = make('span', 'det-Choice-hint');
  private readonly _problem = make('div', 'det-Choice-problem');
  private readonly _test = make('input');

  constructor(private readonly _onChoice: (choice: Partial<Choice>) => void) {
    const places = (Object.keys(PLACES) as Place[]).map(place =>
      this._makePlace(place)
    );
    this._places = new Map(places.map(({ place, input }) => [place, input]));
    const group = make(
      'fieldset',
      '',
      {},
      make('legend', '', {}, 'Where to train')
    );
    group.append(...places.map(({ label }) => label));
    this._problem.id = 'det-choice-problem';
    this._problem.setAttribute('role', 'alert');
    this.element.append(
      this._makeCall(),
      group,
      this._makeSlots(),
      this._problem,
      this._makeTest()
    );
  }

  /** Show the choice; what the user is typing is left alone. */
  show(model: DialogModel): void {
    const reading = model.phase === 'inspecting' && model.inspection === null;
    const busy = reading || model.phase === 'submitting';
    const here = model.choice.place === 'here';
    for (const [place, input] of this._places) {
      input.checked = place === model.choice.place;
      input.disabled = busy;
    }
    this._showCalls(model);
    this._call.disabled = busy || this._call.length < 2;
    this._slots.disabled = busy || here;
    this._test.disabled = busy;
    this._test.checked = model.choice.test;
    const { slots } = model.choice;
    if (document.activeElement !== this._slots) {
      this._slots.value = slots === null ? '' : String(slots);
    }
    this._slots.max =
      model.slotsOffered === null ? '' : String(model.slotsOffered);
    this._slotsOf.textContent =
      model.slotsOffered === null
        ? ''
        : `of ${model.slotsOffered}${model.slotKinds && `: ${model.slotKinds}`}`;
    const problem = slotsProblem(model);
    this._problem.textContent = problem;
    this._problem.hidden = problem === '';
    this._slots.setAttribute('aria-invalid', String(problem !== ''));
  }

  /** The calls that could be sent; while none is known, there is room for one. */
  private _showCalls({ choice, inspection }: DialogModel): void {
    const { calls = [], chosen = 0, prompts = true } = inspection ?? {};
    const only = inspection && { ...inspection.call, running: null };
    const offered = calls.length > 0 || !only ? calls : [only];
    const names = offered.map(call => choiceText(call, prompts));
    while (this._call.length > names.length) {
      this._call.remove(names.length);
    }
    names.forEach((name, index) => {
      const option =
        this._call.options[index] ??
        this._call.appendChild(make('option', '', { value: String(index) }));
      setText(option, name);
    });
    this._call.value = String(choice.call ?? chosen);
  }

  private _makeCall(): HTMLElement {
    this._call.addEventListener('change', () =>
      this._onChoice({ call: Number(this._call.value) })
    );
    return make('label', 'det-Choice-call', {}, 'What to train ', this._call);
  }

  private _makePlace(place: Place) {
    const input = make('input');
    input.type = 'radio';
    input.name = 'det-place';
    input.value = place;
    input.addEventListener('change', () => this._onChoice({ place }));
    return {
      place,
      input,
      label: make('label', '', {}, input, ` ${PLACES[place]}`)
    };
  }

  private _makeSlots(): HTMLElement {
    this._slots.type = 'number';
    this._slots.min = '0';
    this._slots.step = '1';
    this._slots.setAttribute('aria-describedby', 'det-choice-problem');
    this._slots.addEventListener('input', () => {
      this._onChoice({
        slots: this._slots.value === '' ? null : Number(this._slots.value)
      });
    });
    return make(
      'label',
      'det-Choice-slots',
      {},
      'Slots for each trial (empty: as configured) ',
      this._slots,
      this._slotsOf
    );
  }

  private _makeTest(): HTMLElement {
    this._test.type = 'checkbox';
    this._test.addEventListener('change', () =>
      this._onChoice({ test: this._test.checked })
    );
    return make(
      'label',
      '',
      {},
      this._test,
      ' Only test: one minimal loop of training, validation and checkpointing'
    );
  }
}
