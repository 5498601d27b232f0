/** Lines of a log: their levels, colours, and which of them are wanted. Pure. */

import type { LogLine } from '../../shared/model';

export type Level = 'error' | 'warning' | 'info' | 'debug';

export const LEVELS: readonly Level[] = ['debug', 'info', 'warning', 'error'];

/** A line as it is shown. */
export interface ShownLine {
  readonly line: LogLine;
  /** Without colours and what was overwritten. */
  readonly text: string;
  readonly level: Level;
}

/* eslint-disable no-control-regex -- they are what is looked for */
const ESCAPES =
  /\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g;
const COLOUR = /\u001b\[([0-9;]*)m/;
/* eslint-enable no-control-regex */

/** What a terminal would show of a line: a carriage return begins anew what it overwrites. */
export function plainText(text: string): string {
  const bare = text.includes('\u001b') ? text.replace(ESCAPES, '') : text;
  if (!bare.includes('\r')) {
    return bare;
  }
  const parts = bare.split('\r').filter(part => part !== '');
  return parts.at(-1) ?? '';
}

const ERROR =
  /\b(ERROR|CRITICAL|FATAL)\b|^Traceback \(most recent call last\)|^\s*\w*(Error|Exception)\b(:|$)/;
const WARNING = /\b(WARN|WARNING)\b|Warning: /;
const DEBUG = /\bDEBUG\b/;

/** The level of one line by what it says. */
export function levelOf(text: string): Level {
  if (ERROR.test(text)) {
    return 'error';
  }
  if (WARNING.test(text)) {
    return 'warning';
  }
  return DEBUG.test(text) ? 'debug' : 'info';
}

/** Lines with their levels; the lines of a traceback are errors up to the one that says what it was. */
export function shownLines(
  lines: readonly LogLine[],
  before: readonly ShownLine[] = []
): ShownLine[] {
  const last = before.at(-1);
  let inside = last !== undefined && inTraceback(before);
  return lines.map(line => {
    const text = plainText(line.text);
    if (text.startsWith('Traceback (most recent call last)')) {
      inside = true;
      return { line, text, level: 'error' };
    }
    if (inside) {
      inside = /^\s/.test(text) || text === '';
      return { line, text, level: 'error' };
    }
    return { line, text, level: levelOf(text) };
  });
}

/** Whether a traceback that has begun goes on behind the last line. */
function inTraceback(lines: readonly ShownLine[]): boolean {
  for (let at = lines.length - 1; at >= Math.max(lines.length - 200, 0); at--) {
    const { text, level } = lines[at]!;
    if (text.startsWith('Traceback (most recent call last)')) {
      return true;
    }
    if (level !== 'error' || !(/^\s/.test(text) || text === '')) {
      return false;
    }
  }
  return false;
}

export interface LogFilter {
  readonly search: string;
  /** Lines of this level and above; empty for all. */
  readonly level: string;
  /** As `rank 1` or `worker 0`; empty for all. */
  readonly process: string;
  /** Times as a field for date and time has them; empty for no limit. */
  readonly from: string;
  readonly to: string;
}

export const ALL_LINES: LogFilter = {
  search: '',
  level: '',
  process: '',
  from: '',
  to: ''
};

/** `worker 1` where processes have roles, else `rank 1`; empty where there is one process only. */
export function processOf({
  rank,
  role
}: Pick<LogLine, 'rank' | 'role'>): string {
  return role ?? (typeof rank === 'number' ? `rank ${rank}` : '');
}

export function isFiltered(filter: LogFilter): boolean {
  return Object.values(filter).some(part => part !== '');
}

/** The lines that are wanted. */
export function filtered(
  lines: readonly ShownLine[],
  filter: LogFilter
): readonly ShownLine[] {
  if (!isFiltered(filter)) {
    return lines;
  }
  const least = LEVELS.indexOf(filter.level as Level);
  const wanted = filter.search.toLowerCase();
  const from = filter.from === '' ? -Infinity : Date.parse(filter.from);
  const to = filter.to === '' ? Infinity : Date.parse(filter.to);
  const timed = filter.from !== '' || filter.to !== '';
  return lines.filter(({ line, text, level }) => {
    if (least >= 0 && LEVELS.indexOf(level) < least) {
      return false;
    }
    if (filter.process !== '' && processOf(line) !== filter.process) {
      return false;
    }
    if (timed) {
      const time = Date.parse(line.time);
      if (time < from || time > to) {
        return false;
      }
    }
    return wanted === '' || text.toLowerCase().includes(wanted);
  });
}

/** The index of the first line of the next error behind `at`; from the top if there is none behind it; -1 for none. */
export function nextError(lines: readonly ShownLine[], at: number): number {
  const begins = (index: number) =>
    lines[index]?.level === 'error' && lines[index - 1]?.level !== 'error';
  for (let index = at + 1; index < lines.length; index += 1) {
    if (begins(index)) {
      return index;
    }
  }
  for (let index = 0; index <= at && index < lines.length; index += 1) {
    if (begins(index)) {
      return index;
    }
  }
  return -1;
}

/** A piece of a line in the colours that its program has chosen: 0 to 7, -1 for those of the page. */
export interface ColouredPart {
  readonly text: string;
  readonly colour: number;
  readonly bold: boolean;
}

/** A line in pieces of one colour each. */
export function colouredParts(text: string): ColouredPart[] {
  if (!text.includes('\u001b')) {
    return [{ text: plainText(text), colour: -1, bold: false }];
  }
  const parts: ColouredPart[] = [];
  let [colour, bold] = [-1, false];
  // A split by a group has what stands between the matches at even places, the group at odd ones.
  text.split(COLOUR).forEach((piece, index) => {
    if (index % 2 === 0) {
      const plain = plainText(piece);
      if (plain !== '') {
        parts.push({ text: plain, colour, bold });
      }
      return;
    }
    for (const code of piece.split(';').map(Number)) {
      if (code === 0) {
        [colour, bold] = [-1, false];
      } else if (code === 1) {
        bold = true;
      } else if (code === 22) {
        bold = false;
      } else if (code === 39) {
        colour = -1;
      } else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
        colour = code % 10;
      }
    }
  });
  return parts;
}

/** All lines as a text file. */
export function logText(lines: readonly ShownLine[]): string {
  return lines
    .map(({ line, text }) => {
      const process = processOf(line);
      return `${line.time} ${process ? `[${process}] ` : ''}${text}\n`;
    })
    .join('');
}
