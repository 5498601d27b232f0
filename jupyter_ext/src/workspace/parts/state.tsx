/** What is shown while there is nothing to show: loading, empty, failed. */

import type { ComponentChildren } from 'preact';

import type { StateText } from '../../shared/texts';

/** The state of an experiment or a trial: a mark and a word, so that no colour has to be told apart. */
export function StateBadge({ state }: { state: StateText }) {
  return (
    <span class="det-state" data-tone={state.tone} title={state.note}>
      <span class="det-state-mark" aria-hidden="true" />
      {state.word}
    </span>
  );
}

/** Bars in the place of what is being loaded; said to screen readers once. */
export function Loading({
  rows = 4,
  label = 'Loading…'
}: {
  rows?: number;
  label?: string;
}) {
  return (
    <div class="det-loading" role="status">
      <span class="det-hidden">{label}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="det-loading-row" aria-hidden="true" />
      ))}
    </div>
  );
}

/** Nothing is there, and what to do about it. */
export function Empty({
  title,
  children
}: {
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="det-empty">
      <p class="det-empty-title">{title}</p>
      {children && <div class="det-empty-body">{children}</div>}
    </div>
  );
}
