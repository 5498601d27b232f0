/** Columns of the table: what each shows, by what it is sorted. Pure. */

import {
  formatAgo,
  formatBytes,
  formatDuration,
  formatPercent,
  formatValue,
  shortened
} from '../../shared/format';
import { experimentStateText } from '../../shared/texts';
import {
  durationOf,
  type ExperimentNames,
  hyperparameter,
  metricNames,
  metricValue,
  nameOf,
  type Row,
  type Which
} from './rows';

/** A column. Cells are texts; `look` names those that are more. */
export interface Column {
  /** Such as `created`, `hp:lr`, `last:val_loss`: as the address has it. */
  readonly key: string;
  readonly label: string;
  readonly width: number;
  /** Numbers stand at the end. */
  readonly number: boolean;
  readonly look: 'text' | 'name' | 'state' | 'progress' | 'labels';
  /** What `order_by` calls it; null where the master cannot sort by it. */
  readonly order: string | null;
  /** Whether the first click on its head puts the greatest first. */
  readonly descending: boolean;
  text(row: Row): string;
}

export const DEFAULT_COLUMNS: readonly string[] = [
  'name',
  'state',
  'best',
  'progress',
  'duration',
  'created',
  'labels',
  'project'
];

type Facts = Partial<Omit<Column, 'key' | 'label' | 'text'>>;

function fixed(
  key: string,
  label: string,
  text: (row: Row) => string,
  facts: Facts = {}
): Column {
  return {
    key,
    label,
    text,
    width: 120,
    number: false,
    look: 'text',
    order: null,
    descending: false,
    ...facts
  };
}

const NUMBER = { number: true, width: 90 } as const;

const FIXED: readonly Column[] = [
  fixed('name', 'Name', ({ experiment }) => nameOf(experiment), {
    width: 260,
    look: 'name',
    order: 'name'
  }),
  fixed('id', 'ID', ({ experiment }) => String(experiment.id), {
    ...NUMBER,
    order: 'id',
    descending: true
  }),
  fixed('state', 'State', row => experimentStateText(row.experiment).word, {
    look: 'state',
    order: 'state'
  }),
  fixed('best', 'Best value', bestText, {
    ...NUMBER,
    width: 160,
    order: 'best'
  }),
  fixed(
    'progress',
    'Progress',
    ({ experiment }) => formatPercent(experiment.progress),
    {
      look: 'progress',
      order: 'progress',
      descending: true
    }
  ),
  fixed(
    'duration',
    'Duration',
    ({ experiment }) => formatDuration(durationOf(experiment)),
    {
      ...NUMBER,
      order: 'duration',
      descending: true
    }
  ),
  fixed(
    'created',
    'Created',
    ({ experiment }) => formatAgo(experiment.created),
    {
      order: 'created',
      descending: true
    }
  ),
  fixed('ended', 'Ended', ({ experiment }) =>
    experiment.ended ? formatAgo(experiment.ended) : '—'
  ),
  fixed(
    'labels',
    'Labels',
    ({ experiment }) => (experiment.labels ?? []).join(', '),
    { look: 'labels', width: 180 }
  ),
  fixed('project', 'Project', row => row.experiment.project || '—', {
    order: 'project',
    width: 140
  }),
  fixed('trials', 'Trials', ({ experiment }) => counted(experiment.trials), {
    ...NUMBER,
    order: 'trials',
    descending: true
  }),
  fixed(
    'slots',
    'Slots per trial',
    row =>
      formatValue(
        at(row.experiment.config, ['resources', 'slots_per_trial']) ?? 1
      ),
    NUMBER
  ),
  fixed(
    'size',
    'Size on disk',
    ({ size }) => (size === null ? '—' : formatBytes(size)),
    NUMBER
  ),
  fixed('user', 'User', row => row.owner || '—'),
  fixed('metric', 'Metric', row => shortened(row.experiment.metric) || '—', {
    width: 140
  }),
  fixed('framework', 'Framework', row => row.experiment.framework, {
    order: 'framework'
  }),
  fixed('searcher', 'Search', row =>
    formatValue(at(row.experiment.config, ['searcher', 'name']))
  ),
  fixed(
    'description',
    'Description',
    row => row.experiment.description || '—',
    {
      width: 220
    }
  ),
  fixed('notes', 'Notes', row => row.notes || '—', { width: 220 }),
  fixed(
    'forked',
    'Forked from',
    ({ experiment }) =>
      experiment.forked_from ? `#${experiment.forked_from}` : '—',
    NUMBER
  )
];
const BY_KEY = new Map(FIXED.map(column => [column.key, column]));

const WORDS: Readonly<Record<Which, string>> = {
  metric: 'best',
  last: 'last',
  min: 'smallest',
  max: 'greatest'
};

/** The column of a key; null if there is none. */
export function columnOf(key: string): Column | null {
  const [kind = '', name] = divided(key);
  if (name === '') {
    return BY_KEY.get(key) ?? null;
  }
  if (kind === 'hp') {
    return fixed(key, name, row => formatValue(hyperparameter(row, name)), {
      ...NUMBER,
      width: 110,
      order: key
    });
  }
  return isWhich(kind)
    ? fixed(
        key,
        `${name} (${WORDS[kind]})`,
        row => formatValue(metricValue(row, name, kind)),
        { ...NUMBER, width: 140, order: key }
      )
    : null;
}

/** Columns that a user may choose, by what they are of. */
export function choosable(
  names: ExperimentNames | null
): ReadonlyArray<{ title: string; columns: readonly Column[] }> {
  const of = (kind: string, known: ReadonlyArray<{ name: string }>) =>
    known
      .map(({ name }) => columnOf(`${kind}:${name}`))
      .filter(column => column !== null);
  return [
    { title: 'Experiment', columns: FIXED },
    {
      title: 'Hyperparameters',
      columns: of('hp', names?.hyperparameters ?? [])
    },
    ...(['metric', 'last', 'min', 'max'] as const).map(which => ({
      title: `Metrics: ${WORDS[which]} value`,
      columns: of(which, names?.metrics ?? [])
    }))
  ];
}

/** What the rows must have for these columns. */
export function needed(columns: readonly Column[]): {
  hparams: boolean;
  metrics: string[];
} {
  const names = columns.flatMap(({ key }) => {
    const [kind, name] = divided(key);
    return isWhich(kind) && name !== '' ? metricNames(name) : [];
  });
  return {
    hparams: columns.some(({ key }) => key.startsWith('hp:')),
    metrics: [...new Set(names)]
  };
}

/** Columns as the address has them. The name comes first, always. */
export function readColumns(text: string): Column[] {
  const keys = text === '' ? DEFAULT_COLUMNS : text.split(',').map(decoded);
  const columns = [...new Set(['name', ...keys])].map(columnOf);
  return columns.filter(column => column !== null);
}

export function columnsText(columns: readonly Column[]): string {
  const keys = columns.map(({ key }) => encodeURIComponent(key));
  const text = keys.join(',');
  return text === DEFAULT_COLUMNS.join(',') ? '' : text;
}

/** Put a column into the place of another; the name stays first. */
export function moved(
  columns: readonly Column[],
  key: string,
  to: number
): Column[] {
  const from = columns.findIndex(column => column.key === key);
  const target = Math.min(Math.max(to, 1), columns.length - 1);
  if (from < 1) {
    return [...columns];
  }
  const others = columns.filter((_, at) => at !== from);
  return others.toSpliced(target, 0, columns[from]!);
}

/** A sorting, such as `hp:lr desc`, in parts; null if it is none. */
export function readSort(
  text: string
): { order: string; descending: boolean } | null {
  const found = /^(.+) (asc|desc)$/s.exec(text);
  return found ? { order: found[1]!, descending: found[2] === 'desc' } : null;
}

/** What a click on the head of a column sorts by: one way, the other way, then newest first again. */
export function nextSort(column: Column, now: string): string {
  const { order, descending } = column;
  if (order === null) {
    return now;
  }
  const direction = (down: boolean) => `${order} ${down ? 'desc' : 'asc'}`;
  return now === direction(descending)
    ? direction(!descending)
    : now === direction(!descending)
      ? ''
      : direction(descending);
}

/** A number of things, thousands apart: `2,694`. */
export function counted(number: number): string {
  return number.toLocaleString('en-US');
}

function bestText({ experiment }: Row): string {
  const { best_validation: best, metric } = experiment;
  return best === null ? '—' : `${formatValue(best)} ${shortened(metric)}`;
}

function isWhich(kind: string | undefined): kind is Which {
  return kind !== undefined && kind in WORDS;
}

function divided(key: string): [string, string] {
  const place = key.indexOf(':');
  return place < 0 ? [key, ''] : [key.slice(0, place), key.slice(place + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

function at(values: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (found, part) =>
      typeof found === 'object' && found !== null
        ? (found as Record<string, unknown>)[part]
        : undefined,
    values
  );
}
