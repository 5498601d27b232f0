/** Puts the last state of a view into its notebook's output, as the kernel does while JupyterLab knows the display. */
import type { Widget } from '@lumino/widgets';

import type { SavedState } from '../../shared/liveViews';
import { VIEW_MIME_TYPE } from './mimeType';

/** What is needed of an output of a notebook, and of those of a cell. */
interface Output {
  readonly data: SavedState;
  toJSON(): Readonly<Record<string, unknown>>;
}

interface Outputs {
  readonly length: number;
  get(index: number): Output;
  set(index: number, output: Readonly<Record<string, unknown>>): void;
}

/**
 * Renew the output that shows a view. JupyterLab forgets at a reload of the page which output belongs to which display,
 * and drops what the kernel renews from then on.
 */
export function keep(shown: Widget, viewId: string, state: SavedState): void {
  const outputs = outputsOf(shown);
  for (let index = 0; index < (outputs?.length ?? 0); index += 1) {
    const output = outputs?.get(index);
    const named = output?.data[VIEW_MIME_TYPE] as
      { view_id?: unknown } | undefined;
    if (output && named?.view_id === viewId) {
      outputs?.set(index, { ...output.toJSON(), data: state });
    }
  }
}

/** The outputs of the cell in which something is shown. */
function outputsOf(shown: Widget): Outputs | null {
  for (let each: Widget | null = shown.parent; each; each = each.parent) {
    const { model } = each as { model?: Partial<Outputs> };
    if (
      typeof model?.get === 'function' &&
      typeof model.set === 'function' &&
      typeof model.length === 'number'
    ) {
      return model as Outputs;
    }
  }
  return null;
}
