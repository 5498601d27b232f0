/** What the submit dialog says of an inspection, as texts. Pure. */
import { capitalised, cellName, formatBytes } from '../../shared/format';
import { counted, type DialogModel } from './dialogModel';
import type {
  CallChoice,
  CaptureRow,
  CellRemark,
  Inspection,
  Place
} from './inspection';

/** A group of remarks under a heading. */
export interface Remarks {
  kind: 'warning' | 'changed' | 'must-run' | 'note';
  heading: string;
  lines: string[];
}

const FRAMEWORKS: Readonly<Record<string, string>> = {
  keras: 'Keras',
  torch: 'PyTorch',
  estimator: 'Estimator'
};

/** One line: what is sent, and what for. `Sends 4 of 6 cells, 2 values and 1 file (3.2 MB) and trains 4 trials.` */
export function summaryText(
  inspection: Inspection,
  place: Place,
  test: boolean
): string {
  const { here, total, rows, cells_in_all: all = null } = inspection;
  const trains = test ? 'tests one minimal loop' : trainsText(inspection);
  const count = (kind: string) => rows.filter(row => row.how === kind).length;
  const cells =
    place === 'here' || count('source') === 0
      ? here.cells.length
      : numberIn(rows.find(row => row.how === 'source')?.what ?? '');
  const of =
    all !== null && all > cells
      ? `${cells} of ${counted(all, 'cell')}`
      : counted(cells, 'cell');
  if (place === 'here') {
    return `Runs ${of} in this kernel and ${trains}.`;
  }
  const sent = rows.filter(row => row.status !== 'not sent');
  const values = sum(sent.map(valuesIn));
  const files = sum(sent.map(filesIn));
  const parts = [
    of,
    ...(values > 0 ? [counted(values, 'value')] : []),
    ...(files > 0 ? [counted(files, 'file')] : [])
  ];
  const last = parts.pop() ?? '';
  const list = parts.length > 0 ? `${parts.join(', ')} and ${last}` : last;
  return `Sends ${list} (${formatBytes(total)}) and ${trains}.`;
}

function trainsText({ trials = null, config }: Inspection): string {
  if (trials !== null) {
    return `trains ${counted(trials, 'trial')}`;
  }
  return config === null
    ? 'trains'
    : 'trains as many trials as its search needs';
}

/** What a row says that is no value: the program itself, and what is only told of it. */
const NO_VALUES = new Set([
  'source',
  'script',
  'runs again',
  'made again',
  'requirement',
  'file',
  'folder'
]);

function valuesIn({ how }: CaptureRow): number {
  if (/^\d+ values?$/.test(how)) {
    return numberIn(how);
  }
  return NO_VALUES.has(how) || filesIn({ how }) > 0 ? 0 : 1;
}

function filesIn({ how }: Pick<CaptureRow, 'how'>): number {
  return /^\d+ files?$/.test(how) ? numberIn(how) : Number(how === 'file');
}

function numberIn(text: string): number {
  return Number.parseInt(text, 10) || 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}

/** One sentence: which call is sent or run, and with what. */
export function callText(inspection: Inspection, place: Place): string {
  const { call, prompts } = inspection;
  const framework = FRAMEWORKS[call.framework] ?? call.framework;
  const verb = place === 'here' ? 'Runs' : 'Sends';
  return `${verb} ${call.kind}() of ${framework}, ${cellName(call.cell, prompts)}, line ${call.line}, and every Python cell above.`;
}

/** `fit() in cell [3], line 2`: a training call among others. */
export function choiceText(call: CallChoice, prompts: boolean): string {
  const place = `${call.kind}() in ${cellName(call.cell, prompts)}, line ${call.line}`;
  return call.running === null
    ? place
    : `${place}, called in ${cellName(call.running, prompts)}`;
}

/** One sentence: how much travels. */
export function totalText(inspection: Inspection): string {
  const total = `${formatBytes(inspection.total)} in all`;
  if (inspection.master_problem) {
    return `${total}. ${inspection.master_problem}`;
  }
  if (inspection.master === null) {
    return `${total}. No master runs yet: submitting starts one on this machine.`;
  }
  if (inspection.new === 0) {
    return `${total}; the master has all of it already.`;
  }
  if (inspection.new === inspection.total) {
    return `${total}, all of it new to the master.`;
  }
  return `${total}, of which ${formatBytes(inspection.new)} are new to the master.`;
}

/** Size of a row; nothing for what is only said, such as that a cell runs again. */
export function sizeText(row: CaptureRow): string {
  return row.size === 0 ? '' : formatBytes(row.size);
}

/** Whether the master has a row; nothing for a cell that runs again: its source is a row of its own. */
export function statusText(row: CaptureRow): string {
  return row.how === 'runs again' ? '' : (row.status ?? 'new');
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
    group(
      'must-run',
      'Cells that run first, in a process of their own, to learn the configuration',
      here || model.phase === 'blocked'
        ? []
        : remarkLines(inspection.must_run, inspection.prompts)
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
