/** A group of experiments: count, mean and deviation of a measure, the best one; it opens to its experiments. */

import { Icon } from '../parts/icon';
import { several } from './bulk';
import { bandOf, groupName, meanText, measureText } from './groupStatistics';
import type { Group } from './rows';

export interface GroupRowProps {
  group: Group;
  open: boolean;
  by: string;
  measure: string;
  scale: { low: number; high: number } | null;
  number: number;
  top: number;
  height: number;
  elementId: string;
  active: boolean;
  narrow: boolean;
  onToggle: () => void;
}

const WIDTH = 120;

export function GroupRow(props: GroupRowProps) {
  const { group, open, by, measure, scale, onToggle } = props;
  const band = scale === null ? null : bandOf(group, scale);
  const name = groupName(by, group.value);
  return (
    <div
      role="row"
      id={props.elementId}
      class="det-list-row det-list-group"
      aria-rowindex={props.number}
      aria-expanded={open}
      data-active={props.active}
      style={{
        transform: `translateY(${props.top}px)`,
        height: `${props.height}px`
      }}
      onClick={onToggle}
    >
      <div role="gridcell" class="det-list-group-cell">
        <Icon name={open ? 'down' : 'forward'} />
        <strong class="det-list-text" title={name.slice(0, 1000)}>
          {name.slice(0, 300)}
        </strong>
        <span class="det-list-id">{several(group.count)}</span>
        {measure !== '' && (
          <>
            <span class="det-list-mean">
              {!props.narrow && 'mean '}
              {meanText(group, measure)}
            </span>
            {band !== null && !props.narrow && (
              <svg
                class="det-list-band"
                width={WIDTH}
                height="16"
                aria-hidden="true"
              >
                <line x1="0" x2={WIDTH} y1="8" y2="8" class="det-list-axis" />
                <rect
                  x={band.from * (WIDTH - 6)}
                  width={Math.max((band.to - band.from) * (WIDTH - 6), 0) + 6}
                  y="4"
                  height="8"
                  rx="2"
                />
                <circle cx={band.middle * (WIDTH - 6) + 3} cy="8" r="3" />
              </svg>
            )}
            {!props.narrow && (
              <span class="det-list-id">
                best {measureText(group.best, measure)}
                {group.measured < group.count &&
                  ` · ${group.count - group.measured} without a value`}
              </span>
            )}
          </>
        )}
      </div>
    </div>
  );
}
