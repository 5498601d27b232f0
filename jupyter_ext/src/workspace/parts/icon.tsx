/** Icons of 16 by 16 pixels, drawn in the colour of the text. Each means one thing everywhere. */

const PATHS = {
  add: 'M8 3v10M3 8h10',
  archive: 'M2 3h12v3H2zM3 6v7h10V6M6 9h4',
  back: 'M10 3 5 8l5 5',
  close: 'M4 4l8 8M12 4l-8 8',
  columns: 'M2 3h12v10H2zM6 3v10M10 3v10',
  copy: 'M5 5h8v9H5zM3 11V2h8',
  download: 'M8 2v8M4.5 7 8 10.5 11.5 7M3 13h10',
  down: 'M3.5 6 8 10.5 12.5 6',
  drag: 'M6 4h.01M6 8h.01M6 12h.01M10 4h.01M10 8h.01M10 12h.01',
  edit: 'M3 13l.5-3L11 2.5 13.5 5 6 12.5zM9.5 4 12 6.5',
  filter: 'M2 3h12L9.5 8.5V13l-3-1.5v-3z',
  forward: 'M6 3l5 5-5 5',
  fullscreen: 'M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3',
  leave: 'M9 3H3v10h6M7 8h7M11 5l3 3-3 3',
  link: 'M6.5 9.5l3-3M7 4.5 9 2.6a3 3 0 0 1 4.3 4.3L11.5 9M9 11.5l-2 1.9a3 3 0 0 1-4.3-4.3L4.5 7',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  pause: 'M5 3v10M11 3v10',
  pin: 'M6 2h4l-.5 5L12 9H4l2.5-2zM8 9v5',
  play: 'M5 3l8 5-8 5z',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2v4H9',
  reset: 'M3 8a5 5 0 1 0 1.5-3.5L3 6M3 2v4h4',
  search: 'M7 2a5 5 0 1 1 0 10A5 5 0 0 1 7 2zM10.6 10.6 14 14',
  settings:
    'M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4',
  stop: 'M4 4h8v8H4z',
  tag: 'M2 2h6l6 6-6 6-6-6zM5 5h.01',
  theme: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 2v12M8 6h5M8 10h5',
  trash: 'M3 4h10M6 4V2h4v2M4 4l1 10h6l1-10M7 7v4M9 7v4',
  up: 'M3.5 10 8 5.5 12.5 10',
  warning: 'M8 2l6.5 12h-13zM8 6.5v3.5M8 12h.01'
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="det-icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
