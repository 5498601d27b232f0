/** Lines of a log, of which those in sight are drawn; the end is followed until somebody scrolls up. */

import { forwardRef } from 'preact/compat';
import {
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef
} from 'preact/hooks';

import { formatClock } from '../../shared/format';
import { colouredParts, processOf, type ShownLine } from './logLines';
import { useVirtualRows } from './virtualRows';

export const LINE_HEIGHT = 18;
const NEAR_END = 24;
const NEAR_TOP = 200;

export interface LogListProps {
  lines: readonly ShownLine[];
  /** Marked where it stands in a line. */
  search: string;
  times: boolean;
  follow: boolean;
  /** Place of the line that was jumped to; -1 for none. */
  marked: number;
  onFollow: (follow: boolean) => void;
  /** Earlier lines are wanted. */
  onTop: () => void;
}

export const LogList = forwardRef<
  { show: (index: number) => void },
  LogListProps
>(({ lines, search, times, follow, marked, onFollow, onTop }, ref) => {
  const scroller = useRef<HTMLDivElement>(null);
  const seen = useVirtualRows(scroller, lines.length, LINE_HEIGHT);
  useImperativeHandle(ref, () => ({ show: index => seen.scrollTo(index) }));

  const first = lines[0]?.line.id;
  const before = useRef({ first, count: lines.length });
  useLayoutEffect(() => {
    const element = scroller.current;
    const grown = lines.length - before.current.count;
    // What is read stays in its place when earlier lines come before it.
    if (
      element &&
      !follow &&
      grown > 0 &&
      first !== undefined &&
      before.current.first !== undefined &&
      first < before.current.first
    ) {
      element.scrollTop += grown * LINE_HEIGHT;
    }
    before.current = { first, count: lines.length };
  }, [first, lines.length, follow]);
  useEffect(() => {
    const element = scroller.current;
    if (follow && element) {
      element.scrollTop = element.scrollHeight;
    }
  }, [follow, lines]);

  const place = useRef(0);
  return (
    <div
      ref={scroller}
      class="det-exp-log"
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Log lines"
      onScroll={event => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        const up = scrollTop < place.current - 2;
        place.current = scrollTop;
        const atEnd = scrollTop + clientHeight >= scrollHeight - NEAR_END;
        if (atEnd !== follow && (atEnd || up)) {
          onFollow(atEnd);
        }
        if (up && scrollTop < NEAR_TOP) {
          onTop();
        }
      }}
    >
      <div style={{ height: `${seen.before}px` }} />
      {lines.slice(seen.first, seen.end).map((shown, index) => (
        <Line
          key={shown.line.id}
          shown={shown}
          search={search}
          times={times}
          marked={seen.first + index === marked}
        />
      ))}
      <div style={{ height: `${seen.behind}px` }} />
    </div>
  );
});

function Line({
  shown: { line, text, level },
  search,
  times,
  marked
}: {
  shown: ShownLine;
  search: string;
  times: boolean;
  marked: boolean;
}) {
  const process = processOf(line);
  return (
    <div class="det-exp-line" data-level={level} data-marked={marked}>
      {times && (
        <time dateTime={line.time} title={line.time}>
          {formatClock(line.time)}{' '}
        </time>
      )}
      {process && <span class="det-exp-muted">[{process}] </span>}
      {search === ''
        ? colouredParts(line.text).map(
            ({ text: part, colour, bold }, index) => (
              <span key={index} data-colour={colour} data-bold={bold}>
                {part}
              </span>
            )
          )
        : matches(text, search)}
    </div>
  );
}

/** The line, with what was searched for marked. */
function matches(text: string, search: string) {
  const parts = [];
  const [low, wanted] = [text.toLowerCase(), search.toLowerCase()];
  let at = 0;
  for (;;) {
    const found = low.indexOf(wanted, at);
    if (found < 0) {
      break;
    }
    parts.push(text.slice(at, found));
    const end = found + wanted.length;
    parts.push(<mark key={found}>{text.slice(found, end)}</mark>);
    at = end;
  }
  parts.push(text.slice(at));
  return parts;
}
