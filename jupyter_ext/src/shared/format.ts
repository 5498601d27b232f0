/** Numbers, sizes and times in few characters. */

/** `1:02:03`, `4:05`, `12 s`; an em dash if it is not known. */
export function formatDuration(seconds: number | null | undefined): string {
  if (
    seconds === null ||
    seconds === undefined ||
    !Number.isFinite(seconds) ||
    seconds < 0
  ) {
    return '—';
  }
  const whole = Math.round(seconds);
  if (whole < 60) {
    return `${whole} s`;
  }
  const two = (part: number) => String(part).padStart(2, '0');
  const [hours, minutes] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60
  ];
  if (hours >= 48) {
    return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  }
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}

/** `2,694`: how many. */
export function formatCount(count: number): string {
  return count.toLocaleString('en');
}

/** A time left as people say it: `about 20 s`, `about 2 min`, `about 1 h 30 min`; as `about` of Python has it. */
export function formatLeft(seconds: number): string {
  if (seconds < 10) {
    return 'a few seconds';
  }
  if (seconds < 55) {
    return `about ${Math.round(seconds / 5) * 5} s`;
  }
  const minutes = Math.max(Math.round(seconds / 60), 1);
  if (minutes < 58) {
    return `about ${minutes < 10 ? minutes : Math.round(minutes / 5) * 5} min`;
  }
  const tens = Math.round(minutes / 10);
  const hours = Math.floor(tens / 6);
  if (hours < 5) {
    const rest = (tens % 6) * 10;
    return `about ${hours} h${rest > 0 ? ` ${rest} min` : ''}`;
  }
  const whole = Math.round(minutes / 60);
  return whole < 48
    ? `about ${whole} h`
    : `about ${Math.round(whole / 24)} days`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Bytes in the largest unit that leaves at least 1 before the point (powers of 1000). */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(amount) : Number(amount.toPrecision(3))} ${UNITS[unit]}`;
}

const LONGEST_TEXT = 40;
const TAIL = 15;

/** A metric or a hyperparameter: four digits that count; what is no number as text, cut to 40 characters. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) {
    return '—';
  }
  if (typeof value === 'number') {
    return formatNumber(value);
  }
  return shortened(typeof value === 'string' ? value : JSON.stringify(value));
}

/** A text of at most 40 characters, its middle left out. */
export function shortened(text: string): string {
  const letters = [...text];
  return letters.length <= LONGEST_TEXT
    ? text
    : [
        ...letters.slice(0, LONGEST_TEXT - 1 - TAIL),
        '…',
        ...letters.slice(-TAIL)
      ].join('');
}

/** As `format_value` of Python (`det_native/client/short_forms.py`) writes it. */
function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) {
    return String(value);
  }
  return !Number.isInteger(value) && size >= 1e-3 && size < 1e5
    ? String(Number(value.toPrecision(4)))
    : value.toExponential(3).replace(/\.?0+e/, 'e');
}

/** `cell [3]`; `a cell` where it has no number. */
export function cellName(cell: number | null): string {
  return cell === null ? 'a cell' : `cell [${cell}]`;
}

/** `Cell [3]` for `cell [3]`. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** From 0 to 100; never 100 before it is all done. */
export function wholePercent(fraction: number): number {
  if (!(fraction > 0)) {
    return 0;
  }
  // 0.29 is a little less than 29 hundredths in binary.
  return fraction >= 1 ? 100 : Math.min(Math.floor(fraction * 100 + 1e-9), 99);
}

/** `37 %`; never 100 % before it is all done. */
export function formatPercent(fraction: number): string {
  return `${wholePercent(fraction)} %`;
}

/** `just now`, `5 min ago`, `3 h ago`, then the date. */
export function formatAgo(
  time: string | number | Date,
  now: number = Date.now()
): string {
  const then = new Date(time);
  const seconds = (now - then.getTime()) / 1000;
  if (Number.isNaN(seconds)) {
    return '';
  }
  if (seconds < 60) {
    return 'just now';
  }
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min ago`;
  }
  if (seconds < 86400) {
    return `${Math.floor(seconds / 3600)} h ago`;
  }
  return then.toLocaleDateString(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric'
  });
}

/** `14:03:27`, in the reader's time zone. */
export function formatClock(time: number | string | Date): string {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map(part => String(part).padStart(2, '0'))
    .join(':');
}

/** The first eight characters of a checkpoint's id. */
export function shortUuid(uuid: string): string {
  return uuid.slice(0, 8);
}
