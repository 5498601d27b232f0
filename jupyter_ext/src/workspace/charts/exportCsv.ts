/** A chart as a CSV file: a line for each value. Pure. */

import { AXES, type Axis, type Series, type Value } from './series';

/** What spreadsheets take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * All values of series on all axes that are known.
 *
 * Of a metric only the times of some reports are known: its times are worked out between them, and the head says so.
 */
export function toCsv(series: readonly Series[]): string {
  const axes = AXES.filter(axis =>
    series.some(({ x }) => x[axis] !== undefined)
  );
  const banded = series.some(({ band }) => Boolean(band));
  const interpolated = series.some(({ source }) => source !== undefined);
  const head = [
    'series',
    ...axes.map(axis => axisColumn(axis, interpolated)),
    'value',
    ...(banded ? ['minimum', 'maximum'] : [])
  ];
  const lines = [head.join(',')];
  for (const each of series) {
    const name = cell(each.label);
    each.values.forEach((value, at) => {
      lines.push(
        [
          name,
          ...axes.map(axis => numberCell(each.x[axis]?.[at], axis)),
          valueCell(value),
          ...(banded
            ? [
                valueCell(each.band ? each.band.minimum[at] : value),
                valueCell(each.band ? each.band.maximum[at] : value)
              ]
            : [])
        ].join(',')
      );
    });
  }
  return `${lines.join('\n')}\n`;
}

function axisColumn(axis: Axis, interpolated: boolean): string {
  const about = interpolated ? ' (interpolated)' : '';
  switch (axis) {
    case 'time':
      return `time${about}`;
    case 'relative':
      return `seconds${about}`;
    case 'batch':
    case 'epoch':
    case 'samples':
      return axis;
  }
}

function numberCell(value: number | undefined, axis: Axis): string {
  if (value === undefined || !Number.isFinite(value)) {
    return '';
  }
  switch (axis) {
    case 'time':
      return new Date(value * 1000).toISOString();
    case 'relative':
      return String(Number(value.toFixed(3)));
    case 'batch':
    case 'epoch':
    case 'samples':
      return String(Number(value.toPrecision(12)));
  }
}

function valueCell(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}

/** A name as it is, but never a formula. */
function cell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
