/** Icons of the extension: our mark, and one shape for each state (the shape says it too, not the colour alone). */
import { LabIcon } from '@jupyterlab/ui-components';

function icon(name: string, viewBox: string, body: string): LabIcon {
  const svgstr = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="${viewBox}">${body}</svg>`;
  return new LabIcon({ name: `det-native:${name}`, svgstr });
}

/** A falling curve over its axes: experiments. */
export const experimentsIcon = icon(
  'experiments',
  '0 0 24 24',
  '<g class="jp-icon3" fill="#616161">' +
    '<path d="M4 3h2v16h15v2H4z"/>' +
    '<path d="M8 4.6l1.9-.6c1.3 4.6 2.9 7.3 4.9 8.7 1.5 1 3.2 1.5 5.7 1.6l-.1 2' +
    'c-2.9-.1-5-.7-6.8-1.9C11.2 12.6 9.4 9.5 8 4.6z"/></g>'
);

/** An arrow that leaves a tray: submit. */
export const submitIcon = icon(
  'submit',
  '0 0 24 24',
  '<g class="jp-icon3" fill="#616161"><path d="M12 3l6 6h-4v7h-4V9H6z"/><path d="M4 18h16v2H4z"/></g>'
);

const STATE_SHAPES = {
  running:
    '<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" opacity=".35"/>' +
    '<path d="M8 2a6 6 0 0 1 6 6" fill="none" stroke="currentColor" stroke-width="2" class="det-turning"/>',
  waiting:
    '<circle cx="8" cy="8" r="5.3" fill="none" stroke="currentColor" stroke-width="1.5"/>',
  paused: '<path d="M4 3h3v10H4zM9 3h3v10H9z" fill="currentColor"/>',
  done: '<path d="M6.4 12.4L2.5 8.5l1.2-1.2 2.7 2.7 6-6 1.2 1.2z" fill="currentColor"/>',
  partly:
    '<path d="M4.9 12.4L1 8.5l1.2-1.2 2.7 2.7 5-5 1.2 1.2z" fill="currentColor"/>' +
    '<path d="M12.6 3h1.6v6.4h-1.6zM12.6 10.8h1.6v1.6h-1.6z" fill="currentColor"/>',
  failed:
    '<path d="M8 1.5l6.8 12.3H1.2z" fill="none" stroke="currentColor" stroke-width="1.5"/>' +
    '<path d="M7.3 6h1.4v4H7.3zM7.3 10.9h1.4v1.4H7.3z" fill="currentColor"/>',
  stopped: '<path d="M4 4h8v8H4z" fill="currentColor"/>'
} as const;

/** The states that the list tells apart. */
export type Shape = keyof typeof STATE_SHAPES;

/** Icon of each kind of state. */
export const stateIcons = Object.fromEntries(
  Object.entries(STATE_SHAPES).map(([shape, body]) => [
    shape,
    icon(shape, '0 0 16 16', body)
  ])
) as Record<Shape, LabIcon>;
