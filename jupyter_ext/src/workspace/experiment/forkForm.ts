/** The form of a fork: texts in fields, what they mean, and what of them has changed. Pure. */

import {
  type ConfigField,
  type ConfigSection,
  isObject,
  type Json
} from './configSchema';

/** Kinds of a hyperparameter, as the configuration names them. */
export const HPARAM_KINDS = [
  'const',
  'int',
  'double',
  'log',
  'categorical'
] as const;
export type HparamKind = (typeof HPARAM_KINDS)[number];

/** A constant is a number, a list and so on, or a text: `1` may be meant as both. */
export const DRAFT_KINDS = ['const', 'text', ...HPARAM_KINDS.slice(1)] as const;
export type DraftKind = HparamKind | 'text';

/** Parts of a hyperparameter in the form; all are texts. */
export interface HparamDraft {
  readonly kind: DraftKind;
  readonly val: string;
  readonly minval: string;
  readonly maxval: string;
  readonly count: string;
  readonly base: string;
  readonly vals: string;
}

export interface Hparam {
  /** `optimizer.rate`. */
  readonly path: string;
  readonly names: readonly string[];
  readonly spec: Json;
  readonly draft: HparamDraft;
}

export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** Texts by the paths of their fields; what is not there is as it was. */
export type Drafts = Readonly<Record<string, string>>;
export type HparamDrafts = Readonly<Record<string, HparamDraft>>;

/** All hyperparameters, groups flattened. */
export function hparamsOf(
  given: unknown,
  names: readonly string[] = []
): Hparam[] {
  return Object.entries(isObject(given) ? given : {}).flatMap(
    ([name, spec]): Hparam[] => {
      const all = [...names, name];
      if (!isObject(spec)) {
        return [made(all, { type: 'const', val: spec })];
      }
      return isKind(spec.type) ? [made(all, spec)] : hparamsOf(spec, all);
    }
  );
}

function isKind(type: unknown): type is HparamKind {
  return HPARAM_KINDS.some(kind => kind === type);
}

function made(names: readonly string[], spec: Json): Hparam {
  const text = (name: string) => valueText(spec[name]);
  const kind = isKind(spec.type) ? spec.type : 'const';
  return {
    path: names.join('.'),
    names,
    spec,
    draft: {
      kind: kind === 'const' && typeof spec.val === 'string' ? 'text' : kind,
      val: text('val'),
      minval: text('minval'),
      maxval: text('maxval'),
      count: text('count'),
      base: text('base') || '10',
      vals: Array.isArray(spec.vals) ? spec.vals.map(listed).join(', ') : ''
    }
  };
}

/** A value as it is typed: texts without quotes, all else as JSON. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) {
    return '';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** In a list, a text that would be read as something else is quoted. */
function listed(value: unknown): string {
  if (typeof value !== 'string') {
    return JSON.stringify(value);
  }
  const plain = !value.includes(',') && typedValue(value) === value;
  return plain ? value : JSON.stringify(value);
}

/** What was typed: a number, `true`, a list..., or else the text itself. */
export function typedValue(text: string): unknown {
  const trimmed = text.trim();
  try {
    return JSON.parse(trimmed) as unknown;
  } catch {
    // 1e-4 and .5 are numbers for who types them.
    const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed);
    return number ? Number(trimmed) : trimmed;
  }
}

function numberIn(text: string): number | null {
  const value = typedValue(text);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Values of a list that is typed with commas. */
export function typedList(text: string): unknown[] {
  try {
    const list = JSON.parse(`[${text}]`) as unknown;
    return list as unknown[];
  } catch {
    return text
      .split(',')
      .filter(part => part.trim() !== '')
      .map(typedValue);
  }
}

/** What a hyperparameter's fields mean. */
export function parsedHparam(draft: HparamDraft, before: Json): Parsed {
  const { kind } = draft;
  if (kind === 'text') {
    return { value: { type: 'const', val: draft.val } };
  }
  if (kind === 'const') {
    return parsedConstant(draft.val, before);
  }
  if (kind === 'categorical') {
    const vals = typedList(draft.vals);
    return vals.length === 0
      ? { problem: 'At least one value is needed, with commas between them.' }
      : { value: { type: kind, vals } };
  }
  return parsedRange(draft, kind);
}

function parsedConstant(text: string, before: Json): Parsed {
  if (text.trim() === '') {
    return { problem: 'A value is needed.' };
  }
  const val = typedValue(text);
  const was = textless(before);
  return typeof val === 'string' && was !== ''
    ? { problem: `It was ${was}, and this is a text: choose the kind text.` }
    : { value: { type: 'const', val } };
}

/** `a number`, for a hyperparameter that has not been a text; empty for others. */
function textless({ type, val, vals }: Json): string {
  const values = type === 'const' ? [val] : Array.isArray(vals) ? vals : [0];
  const names: Readonly<Record<string, string>> = {
    number: 'a number',
    boolean: 'true or false',
    object: 'a list or an object'
  };
  const open = values.some(each => each === null || typeof each === 'string');
  return open ? '' : (names[typeof values[0]] ?? '');
}

function parsedRange(
  { minval, maxval, count, base }: HparamDraft,
  kind: 'int' | 'double' | 'log'
): Parsed {
  const [least, most] = [numberIn(minval), numberIn(maxval)];
  if (least === null || most === null) {
    return { problem: 'From and to are numbers.' };
  }
  if (kind === 'int' && !(Number.isInteger(least) && Number.isInteger(most))) {
    return { problem: 'From and to are whole numbers.' };
  }
  if (least >= most) {
    return { problem: 'To has to be larger than from.' };
  }
  const points = count.trim() === '' ? null : numberIn(count);
  if (count.trim() !== '' && !(Number.isInteger(points) && points! > 0)) {
    return { problem: 'Points of a grid: a whole number of 1 or more.' };
  }
  const root = numberIn(base);
  if (kind === 'log' && (root === null || root <= 1)) {
    return { problem: 'The base is a number above 1.' };
  }
  return {
    value: {
      type: kind,
      minval: least,
      maxval: most,
      ...(points === null ? {} : { count: points }),
      ...(kind === 'log' ? { base: root } : {})
    }
  };
}

/** A value of the configuration as it stands in its field. */
export function fieldText({ kind, value }: ConfigField): string {
  if (kind === 'length' && isObject(value)) {
    const [entry] = Object.entries(value);
    return entry ? `${String(entry[1])} ${entry[0]}` : '';
  }
  if (kind === 'json') {
    return value === null || value === undefined ? '' : JSON.stringify(value);
  }
  return valueText(value);
}

/** What the text in a field means. */
export function parsedField(field: ConfigField, text: string): Parsed {
  const { kind, nullable } = field;
  const trimmed = text.trim();
  if (trimmed === '' && nullable) {
    return { value: null };
  }
  switch (kind) {
    case 'boolean':
      return { value: trimmed === 'true' };
    case 'choice':
    case 'text':
      return { value: text };
    case 'length': {
      const [, units, unit] =
        /^(\d+) (batches|epochs|records)$/.exec(trimmed) ?? [];
      return unit === undefined
        ? { problem: 'A whole number of 0 or more.' }
        : { value: { [unit]: Number(units) } };
    }
    case 'json':
      return parsedJson(trimmed);
    case 'integer':
    case 'number':
      return parsedNumber(field, trimmed);
  }
}

function parsedJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { problem: 'This is not JSON, such as ["a", 1] or {"name": 2}.' };
  }
}

function parsedNumber(field: ConfigField, text: string): Parsed {
  const { kind, minimum, maximum, above } = field;
  const value = numberIn(text);
  if (value === null) {
    return { problem: 'A number is needed.' };
  }
  if (kind === 'integer' && !Number.isInteger(value)) {
    return { problem: 'A whole number is needed.' };
  }
  if (minimum !== undefined && value < minimum) {
    return { problem: `At least ${minimum}.` };
  }
  if (above !== undefined && value <= above) {
    return { problem: `More than ${above}.` };
  }
  return maximum !== undefined && value > maximum
    ? { problem: `At most ${maximum}.` }
    : { value };
}

export interface Fork {
  /** What is sent: only what has changed. */
  readonly body: {
    name?: string;
    config: Json;
    hyperparameters: Json;
  };
  /** What is wrong, by the path of the field. */
  readonly problems: Readonly<Record<string, string>>;
  readonly changes: number;
}

/** What a form comes to. */
export function forkOf(
  sections: readonly ConfigSection[],
  hparams: readonly Hparam[],
  drafts: Drafts,
  hparamDrafts: HparamDrafts,
  name: string
): Fork {
  const problems: Record<string, string> = {};
  const config: Record<string, unknown> = {};
  const hyperparameters: Record<string, unknown> = {};
  let changes = 0;
  for (const field of sections.flatMap(({ fields }) => fields)) {
    const text = drafts[field.path];
    if (text !== undefined && text !== fieldText(field)) {
      const parsed = parsedField(field, text);
      if ('problem' in parsed) {
        problems[field.path] = parsed.problem;
      } else {
        put(config, field.path.split('.'), parsed.value);
        changes += 1;
      }
    }
  }
  for (const { path, names, spec, draft } of hparams) {
    const changed = hparamDrafts[path];
    if (changed && JSON.stringify(changed) !== JSON.stringify(draft)) {
      const parsed = parsedHparam(changed, spec);
      if ('problem' in parsed) {
        problems[`hyperparameters.${path}`] = parsed.problem;
      } else {
        put(hyperparameters, names, parsed.value);
        changes += 1;
      }
    }
  }
  const body = {
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    config,
    hyperparameters
  };
  return { body, problems, changes };
}

function put(
  into: Record<string, unknown>,
  names: readonly string[],
  value: unknown
): void {
  const [first = '', ...rest] = names;
  if (rest.length === 0) {
    into[first] = value;
    return;
  }
  const inner = into[first];
  const section = isObject(inner) ? { ...inner } : {};
  into[first] = section;
  put(section, rest, value);
}

/** The field that a problem of the master is about: the one whose path has most in common with it; null for none. */
export function fieldOfProblem(
  where: string,
  paths: readonly string[]
): string | null {
  const wanted = where.replaceAll(/\[(\d+)\]/g, '.$1');
  const near = (path: string) =>
    wanted === path ||
    wanted.startsWith(`${path}.`) ||
    path.startsWith(`${wanted}.`);
  const found = paths
    .filter(near)
    .sort((first, second) => second.length - first.length);
  return found[0] ?? null;
}
