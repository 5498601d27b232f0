/** Which charts a board shows. */

import { Button } from '../parts/button';
import { Checkbox, TextField } from '../parts/field';
import { Popover } from '../parts/menu';
import type { BoardState } from './boardState';
import { shortTitle } from './chartMenu';
import type { ChartData } from './series';

export interface ChartChooserProps {
  readonly charts: readonly ChartData[];
  readonly state: BoardState;
  readonly onChange: (change: Partial<BoardState>) => void;
}

export function ChartChooser({ charts, state, onChange }: ChartChooserProps) {
  const { hidden, find } = state;
  const away = charts.filter(({ key }) => hidden.includes(key)).length;
  const isPlain =
    away === 0 &&
    find === '' &&
    state.order.length + state.pinned.length + state.merged.length === 0;
  return (
    <Popover label={away > 0 ? `Charts (${away} hidden)` : 'Charts'}>
      {() => (
        <div class="det-board-chooser">
          <TextField
            label="Only charts with"
            type="search"
            value={find}
            placeholder="part of a name"
            onChange={value => onChange({ find: value })}
          />
          <div class="det-board-choices" role="group" aria-label="Charts shown">
            {charts.map(({ key, title }) => (
              <Checkbox
                key={key}
                label={shortTitle(title)}
                checked={!hidden.includes(key)}
                onChange={checked =>
                  onChange({
                    hidden: checked
                      ? hidden.filter(each => each !== key)
                      : [...hidden, key]
                  })
                }
              />
            ))}
          </div>
          <Button
            disabled={isPlain}
            onClick={() =>
              onChange({
                hidden: [],
                order: [],
                pinned: [],
                merged: [],
                wide: [],
                find: ''
              })
            }
          >
            All charts as they come
          </Button>
        </div>
      )}
    </Popover>
  );
}
