/** The state of a board of charts, in the address. */

import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks';

import { addressText, readAddress } from '../app/address';
import { useAddress, useWorkspace } from '../app/context';
import { boardParameters, type BoardState, readBoard } from './boardState';
import type { Axis, Zoom } from './series';
import { ChartSync } from './sync';

/** A zoom that is still being made is not worth an address. */
const SETTLED_MILLISECONDS = 250;

export interface Board {
  readonly state: BoardState;
  readonly change: (change: Partial<BoardState>) => void;
  /** What charts over this axis share. */
  readonly syncOf: (axis: Axis) => ChartSync;
}

/** @param prefix - Before the names of the parameters, where an address tells of several boards. */
export function useBoard(prefix = ''): Board {
  const { navigation } = useWorkspace().host;
  const { parameters } = useAddress();
  const told = JSON.stringify(boardParameters(readBoard(parameters, prefix)));
  const state = useMemo(() => readBoard(parameters, prefix), [told, prefix]);
  const current = useRef(state);
  current.current = state;

  const change = useCallback(
    (changed: Partial<BoardState>) => {
      const now = readAddress(navigation.current);
      const next = { ...readBoard(now.parameters, prefix), ...changed };
      navigation.open(
        addressText(now.place, {
          ...now.parameters,
          ...boardParameters(next, prefix)
        }),
        { replace: true }
      );
    },
    [navigation, prefix]
  );

  const syncs = useMemo(() => new Map<Axis, ChartSync>(), []);
  const syncOf = useCallback(
    (axis: Axis) => {
      const known = syncs.get(axis);
      if (known) {
        return known;
      }
      const made = new ChartSync();
      if (axis === current.current.settings.axis) {
        made.set(fromState(current.current));
      }
      syncs.set(axis, made);
      return made;
    },
    [syncs]
  );

  const { axis } = state.settings;
  useEffect(() => {
    const sync = syncOf(axis);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = sync.subscribe(({ zoom, pinned }) => {
      const known = current.current;
      clearTimeout(timer); // a zoom that was taken back at once does not come again
      if (!sameZoom(zoom, known.zoom) || (pinned ?? '') !== known.line) {
        timer = setTimeout(
          () => change({ zoom, line: pinned ?? '' }),
          SETTLED_MILLISECONDS
        );
      }
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [axis, syncOf, change]);
  useEffect(() => {
    syncOf(axis).set(fromState(state));
  }, [axis, state.zoom, state.line]);

  return { state, change, syncOf };
}

function fromState({ zoom, line }: BoardState) {
  const pinned = line === '' ? null : line;
  return { zoom, pinned, highlighted: pinned };
}

function sameZoom(one: Zoom, other: Zoom): boolean {
  const text = (zoom: Zoom) =>
    zoom?.map(end => Number(end.toPrecision(13))).join(':');
  return text(one) === text(other);
}
