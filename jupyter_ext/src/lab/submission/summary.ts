/** What the submit dialog says of an inspection, as texts. Pure. */
import { capitalised, cellName } from '../../shared/format';
import { counted, type DialogModel } from './dialogModel';
import type { CallChoice, CellRemark, Inspection, Place } from './inspection';

/** A group of remarks under a heading. */
export interface Remarks {
  kind: 'warning' | 'changed' | 'note';
  heading: string;
  lines: string[];
}

const FRAMEWORKS: Readonly<Record<string, string>> = {
  keras: 'Keras',
  torch: 'PyTorch',
  estimator: 'Estimator'
};

/** One line: what runs, and what for. `Runs 4 of 6 cells in a process of their own and submits what they train.` */
export function summaryText(
  { here, cells_in_all: all = 0 }: Inspection,
  place: Place,
  test: boolean
): string {
  const cells = here.cells.length;
  const of =
    all > cells
      ? `${cells} of ${counted(all, 'cell')}`
      : counted(cells, 'cell');
  if (place === 'here') {
    const trains = test ? 'tests one minimal loop' : 'trains';
    return `Runs ${of} in this kernel and ${trains}.`;
  }
  const submits = test ? 'a test of one minimal loop' : 'the training';
  return `Runs ${of} in a process of their own and submits ${submits}.`;
}

/** One sentence: which call is submitted or run, and after what. */
export function callText(inspection: Inspection, place: Place): string {
  const { call, prompts } = inspection;
  const framework = FRAMEWORKS[call.framework] ?? call.framework;
  const of = framework === '' ? '' : ` of ${framework}`;
  const verb = place === 'here' ? 'Runs' : 'Submits';
  return `${verb} ${call.kind}()${of}, ${cellName(call.cell, prompts)}, line ${call.line}, after every cell above.`;
}

/** `fit() in cell [3], line 2`: a training call among others. */
export function choiceText(call: CallChoice, prompts: boolean): string {
  const place = `${call.kind}() in ${cellName(call.cell, prompts)}, line ${call.line}`;
  return call.running === null
    ? place
    : `${place}, called in ${cellName(call.running, prompts)}`;
}

/** One sentence on the master; empty where there is nothing to say. */
export function masterText(inspection: Inspection): string {
  if (inspection.master_problem) {
    return inspection.master_problem;
  }
  return inspection.master === null
    ? 'No master runs yet: submitting starts one on this machine.'
    : '';
}

/** Everything that the user should know before sending, most important first. */
export function remarks(model: DialogModel): Remarks[] {
  const { inspection, choice } = model;
  if (inspection === null) {
    return [];
  }
  const here = choice.place === 'here';
  return [
    group('warning', 'Warnings', inspection.warnings),
    group(
      'changed',
      'Not what last ran',
      here ? [] : remarkLines(inspection.changed, inspection.prompts)
    ),
    group('note', 'Where it trains', placeNotes(model, inspection))
  ].filter(each => each.lines.length > 0);
}

function placeNotes(
  { choice }: DialogModel,
  { written, here }: Inspection
): string[] {
  if (choice.place === 'here') {
    return [
      `Runs ${counted(here.cells.length, 'cell')} of this notebook in its kernel, from the top, and trains there. ` +
        'The kernel is busy until it ends.'
    ];
  }
  return written.place === 'here'
    ? [
        'The notebook says that it trains locally; it is sent to the cluster all the same.'
      ]
    : [];
}

function group(
  kind: Remarks['kind'],
  heading: string,
  lines: string[]
): Remarks {
  return { kind, heading, lines };
}

/** A line for each thing that is said, with all cells it is said of. */
function remarkLines(found: readonly CellRemark[], prompts: boolean): string[] {
  const cells = new Map<string, (number | null)[]>();
  for (const { cell, why } of found) {
    cells.set(why, [...(cells.get(why) ?? []), cell]);
  }
  return [...cells].map(
    ([why, numbers]) => `${cellNames(numbers, prompts)}: ${why}`
  );
}

/** `Cell [3]`, `Cells [1] to [4], [7]` by their prompts; `Code cells 1 to 4, 7` by their places. */
function cellNames(
  cells: readonly (number | null)[],
  prompts: boolean
): string {
  const numbers = cells.filter(cell => cell !== null);
  if (numbers.length < 2) {
    return capitalised(cellName(numbers[0] ?? null, prompts));
  }
  const kind = prompts ? 'Cells' : 'Code cells';
  const mark = (number: number) => (prompts ? `[${number}]` : `${number}`);
  return `${kind} ${ranges(numbers, mark).join(', ')}`;
}

function ranges(
  numbers: readonly number[],
  mark: (number: number) => string
): string[] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] + 1 === number) {
      last[1] = number;
    } else {
      runs.push([number, number]);
    }
  }
  return runs.map(([first, last]) => {
    if (first === last) {
      return mark(first);
    }
    return last - first === 1
      ? `${mark(first)}, ${mark(last)}`
      : `${mark(first)} to ${mark(last)}`;
  });
}
