/** What a user has set up in this browser: columns, and their widths. Read with care: it may be broken or forbidden. */

const COLUMNS = 'det-native.experiments.columns';
const WIDTHS = 'det-native.experiments.widths';
const NARROWEST = 48;
const WIDEST = 1200;

/** Widths by the key of the column. */
export type Widths = Readonly<Record<string, number>>;

export function keptColumns(): string {
  return read(COLUMNS) ?? '';
}

export function keepColumns(text: string): void {
  write(COLUMNS, text);
}

export function keptWidths(): Widths {
  try {
    const found: unknown = JSON.parse(read(WIDTHS) ?? '{}');
    return Object.fromEntries(
      Object.entries(found ?? {}).filter(
        (entry): entry is [string, number] =>
          typeof entry[1] === 'number' && entry[1] === limited(entry[1])
      )
    );
  } catch {
    return {};
  }
}

export function keepWidths(widths: Widths): void {
  write(WIDTHS, JSON.stringify(widths));
}

/** A width that a column may have. */
export function limited(width: number): number {
  return Math.round(Math.min(Math.max(width, NARROWEST), WIDEST));
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Forbidden or full: the choice lasts as long as the page.
  }
}
