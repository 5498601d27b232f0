/** A part without a framework, as under a cell, in a page of the workspace. */

import { useEffect, useRef } from 'preact/hooks';

import type { ExperimentView } from '../../shared/model';

export interface EmbeddedPart {
  readonly root: HTMLElement;
  update(view: ExperimentView): void;
  dispose?(): void;
}

/** Draws what `make` makes for as long as it is shown, and again with each new view. */
export function Embedded({
  make,
  view
}: {
  make: () => EmbeddedPart;
  view: ExperimentView;
}) {
  const place = useRef<HTMLDivElement>(null);
  const part = useRef<EmbeddedPart | null>(null);
  useEffect(() => {
    const made = make();
    part.current = made;
    place.current?.append(made.root);
    return () => {
      made.dispose?.();
      made.root.remove();
      part.current = null;
    };
  }, []);
  useEffect(() => part.current?.update(view), [view]);
  return <div ref={place} class="det-view det-page det-exp-embedded" />;
}
