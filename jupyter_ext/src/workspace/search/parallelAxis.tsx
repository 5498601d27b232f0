/** Controls of the axes of parallel coordinates: names that move them, ends that filter. */

import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

import type { ParallelAxis, ParallelScene } from './parallelScene';
import { placeWords, type Scale } from './scales';
import { clipped } from './shapes';
import type { Brush } from './trials';

/** Names above the axes: dragged, or moved by the arrow keys. */
export function AxisNames({
  scene,
  width,
  onOrder
}: {
  scene: ParallelScene;
  width: number;
  onOrder: (ids: readonly string[]) => void;
}) {
  const { axes } = scene;
  const [dragged, setDragged] = useState<{ id: string; x: number } | null>(
    null
  );
  const row = useRef<HTMLDivElement>(null);
  const room = axes.length > 1 ? axes[1]!.x - axes[0]!.x : width;
  const move = (id: string, to: number) => {
    const ids = axes.map(({ dimension }) => dimension.id);
    const from = ids.indexOf(id);
    if (to < 0 || to >= ids.length || to === from) {
      return;
    }
    ids.splice(to, 0, ...ids.splice(from, 1));
    onOrder(ids);
    // The name goes with its axis, and keeps the keyboard.
    requestAnimationFrame(() => {
      const names =
        row.current?.querySelectorAll<HTMLElement>('.det-parallel-name');
      names?.item(to).focus();
    });
  };
  const indexAt = (x: number) =>
    axes.reduce(
      (nearest, axis, at) =>
        Math.abs(axis.x - x) < Math.abs(axes[nearest]!.x - x) ? at : nearest,
      0
    );
  return (
    <div ref={row} class="det-parallel-names">
      {axes.map(({ dimension, x }, at) => (
        <button
          key={dimension.id}
          type="button"
          class="det-parallel-name"
          data-kind={dimension.kind}
          style={{
            left: `${dragged?.id === dimension.id ? dragged.x : x}px`,
            maxWidth: `${Math.max(60, room - 8)}px`
          }}
          title={`${clipped(dimension.name, 300)}: drag, or use the arrow keys, to move the axis`}
          aria-label={`${clipped(dimension.name, 80)}, axis ${at + 1} of ${axes.length}: arrow keys move it`}
          onKeyDown={event => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (step !== undefined) {
              event.preventDefault();
              move(dimension.id, at + step);
            }
          }}
          onPointerDown={event => {
            event.currentTarget.setPointerCapture(event.pointerId);
            setDragged({ id: dimension.id, x });
          }}
          onPointerMove={event => {
            if (dragged?.id === dimension.id) {
              const left = row.current!.getBoundingClientRect().left;
              setDragged({ id: dimension.id, x: event.clientX - left });
            }
          }}
          onPointerUp={() => {
            if (dragged !== null) {
              move(dragged.id, indexAt(dragged.x));
              setDragged(null);
            }
          }}
          onPointerCancel={() => setDragged(null)}
        >
          {dimension.name}
        </button>
      ))}
    </div>
  );
}

interface AxisControlsProps {
  readonly axis: ParallelAxis;
  readonly scene: ParallelScene;
  readonly brush: Brush | null;
  /** `done` is false while it is dragged. */
  readonly onChange: (brush: Brush | null, done: boolean) => void;
}

/** A stretch of the axis: drawn by dragging; its two ends are sliders. A click beside it takes it away. */
export function AxisControls({
  axis,
  scene,
  brush,
  onChange
}: AxisControlsProps) {
  const { scale, x, dimension } = axis;
  const length = scene.bottom - scene.top;
  const [low, high] = brush === null ? [0, 1] : scale.stretch(brush);
  const track = useRef<HTMLDivElement>(null);
  const start = useRef<number | null>(null);
  const placeOf = (event: JSX.TargetedPointerEvent<HTMLElement>) => {
    const box = track.current!.getBoundingClientRect();
    const place = 1 - (event.clientY - box.top) / Math.max(box.height, 1);
    return Math.min(1, Math.max(0, place));
  };
  const set = (from: number, to: number, done: boolean) => {
    const [one, other] = from < to ? [from, to] : [to, from];
    const whole = one <= 0.001 && other >= 0.999;
    onChange(whole ? null : scale.brush(one, other), done);
  };
  return (
    <div
      ref={track}
      class="det-parallel-axis"
      data-brushed={brush !== null}
      style={{
        left: `${x}px`,
        top: `${scene.top}px`,
        height: `${length}px`
      }}
      onPointerDown={event => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = placeOf(event);
      }}
      onPointerMove={event => {
        if (start.current !== null) {
          set(start.current, placeOf(event), false);
        }
      }}
      onPointerUp={event => {
        if (start.current !== null) {
          const end = placeOf(event);
          const click = Math.abs(end - start.current) * length < 4;
          if (click) {
            onChange(null, true);
          } else {
            set(start.current, end, true);
          }
          start.current = null;
        }
      }}
      onPointerCancel={() => (start.current = null)}
    >
      <div
        class="det-parallel-brush"
        style={{
          top: `${(1 - high) * length}px`,
          height: `${Math.max(2, (high - low) * length)}px`
        }}
      />
      {(['high', 'low'] as const).map(end => {
        const place = end === 'high' ? high : low;
        const word = end === 'high' ? 'highest' : 'lowest';
        return (
          <div
            key={end}
            class="det-parallel-end"
            data-end={end}
            role="slider"
            tabIndex={0}
            // Else the arrow keys move through the cells of the notebook.
            data-lm-suppress-shortcuts="true"
            aria-orientation="vertical"
            aria-label={`${clipped(dimension.name, 80)}, ${word} value shown`}
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.round(place * 100)}
            aria-valuetext={placeWords(scale, inner(place, end, scale))}
            style={{ top: `${(1 - place) * length}px` }}
            onKeyDown={event => {
              const to = movedBy(event.key, place, scale.step);
              if (to === null) {
                if (event.key === 'Escape' || event.key === 'Delete') {
                  event.preventDefault();
                  onChange(null, true);
                }
                return;
              }
              event.preventDefault();
              event.stopPropagation();
              if (end === 'high') {
                set(low, Math.max(to, low + scale.step / 2), true);
              } else {
                set(Math.min(to, high - scale.step / 2), high, true);
              }
            }}
          />
        );
      })}
    </div>
  );
}

/** Of categories the outermost that is inside of an end. */
function inner(place: number, end: 'high' | 'low', scale: Scale): number {
  const by = scale.kind === 'category' ? scale.step / 2 : 0;
  return Math.min(1, Math.max(0, end === 'high' ? place - by : place + by));
}

function movedBy(key: string, place: number, step: number): number | null {
  const moves: Readonly<Record<string, number>> = {
    ArrowUp: place + step,
    ArrowRight: place + step,
    ArrowDown: place - step,
    ArrowLeft: place - step,
    PageUp: place + 5 * step,
    PageDown: place - 5 * step,
    Home: 0,
    End: 1
  };
  const moved = moves[key];
  return moved === undefined ? null : Math.min(1, Math.max(0, moved));
}
