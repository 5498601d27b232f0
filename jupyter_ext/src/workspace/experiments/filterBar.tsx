/** Filters by state, label, project and time as menus, and what is chosen as chips that can be removed. */

import { Button, IconButton } from '../parts/button';
import { Checkbox } from '../parts/field';
import { Menu, Popover } from '../parts/menu';
import { chips, type Filters, NO_FILTERS, STATES, TIMES } from './filters';
import { ListChoice } from './listChoice';
import type { ExperimentNames } from './rows';

export interface FilterBarProps {
  filters: Filters;
  names: ExperimentNames | null;
  onFilters: (filters: Filters) => void;
}

export function FilterMenus({ filters, names, onFilters }: FilterBarProps) {
  const { states, labels } = filters;
  return (
    <>
      <Menu
        label="State"
        items={STATES.map(state => ({
          label: state,
          checked: states.includes(state),
          onChoose: () =>
            onFilters({ ...filters, states: flipped(states, state) })
        }))}
      />
      <Popover label="Label">
        {() => (
          <ListChoice
            label="Labels"
            choices={names?.labels ?? []}
            chosen={labels}
            empty="No experiment has a label."
            onChoose={label =>
              onFilters({ ...filters, labels: flipped(labels, label) })
            }
          />
        )}
      </Popover>
      <Popover label="Project">
        {close => (
          <ListChoice
            label="Projects"
            choices={names?.projects ?? []}
            chosen={[filters.project]}
            empty="No experiment is in a project."
            onChoose={project => {
              const same = project === filters.project;
              onFilters({ ...filters, project: same ? '' : project });
              close();
            }}
          />
        )}
      </Popover>
      <Popover label="Time">
        {close => (
          <div class="det-list-choice">
            {TIMES.map(({ value, label }) => (
              <Button
                key={value}
                look="quiet"
                aria-pressed={filters.since === value}
                onClick={() => {
                  onFilters({ ...filters, since: value });
                  close();
                }}
              >
                {label}
              </Button>
            ))}
            <label class="det-list-since">
              Created since
              <input
                class="det-input"
                type="date"
                value={/^\d{4}-/.test(filters.since) ? filters.since : ''}
                onChange={event =>
                  onFilters({ ...filters, since: event.currentTarget.value })
                }
              />
            </label>
          </div>
        )}
      </Popover>
      <Checkbox
        label="Archived"
        checked={filters.archived}
        onChange={archived => onFilters({ ...filters, archived })}
      />
    </>
  );
}

/** What is chosen; nothing where nothing is. */
export function Chips({ filters, onFilters }: Omit<FilterBarProps, 'names'>) {
  const shown = chips(filters);
  if (shown.length === 0) {
    return null;
  }
  return (
    <ul class="det-list-chips" aria-label="Filters">
      {shown.map(({ label, without }) => (
        <li key={label} class="det-list-chip">
          <span class="det-list-text" title={label.slice(0, 300)}>
            {label.slice(0, 100)}
          </span>
          <IconButton
            icon="close"
            label={`Remove ${label.slice(0, 100)}`}
            onClick={() => onFilters(without)}
          />
        </li>
      ))}
      <li>
        <Button
          look="quiet"
          onClick={() => onFilters({ ...NO_FILTERS, query: filters.query })}
        >
          Clear filters
        </Button>
      </li>
    </ul>
  );
}

function flipped(values: readonly string[], value: string): string[] {
  return values.includes(value)
    ? values.filter(each => each !== value)
    : [...values, value];
}
