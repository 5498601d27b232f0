/** Views that were saved: the query, filters, sorting, columns and groups by a name, kept by the master. */

import { useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { Parameters } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button, IconButton } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { TextField } from '../parts/field';
import { Popover } from '../parts/menu';
import { columnsText } from './columns';
import type { View } from './rows';
import { KEPT, type TableState } from './tableState';

const LONGEST = 100;

/** What a view keeps of what is shown. */
export function keptParameters(state: TableState): Record<string, string> {
  const kept = Object.fromEntries(
    KEPT.map(name => [name, state.parameters[name] ?? ''])
  );
  kept.columns = columnsText(state.columns) || 'default';
  return Object.fromEntries(
    Object.entries(kept).filter(([, value]) => value !== '')
  );
}

export function Views({ state }: { state: TableState }) {
  const label = state.view === '' ? 'Views' : `View: ${state.view}`;
  return (
    <Popover label={label.slice(0, 40)}>
      {close => <ViewList state={state} close={close} />}
    </Popover>
  );
}

function ViewList({ state, close }: { state: TableState; close: () => void }) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const [name, setName] = useState(state.view);
  const [changed, setChanged] = useState<readonly View[] | null>(null);
  const loaded = useLoad('views', signal =>
    dataOf(api.GET('/api/v1/experiment-views', { signal }))
  );
  const views = changed ?? loaded.data ?? [];
  const there = views.some(view => view.name === name.trim());
  const save = async () => {
    const parameters: Parameters = keptParameters(state);
    try {
      const body = { name: name.trim(), parameters };
      setChanged(await dataOf(api.PUT('/api/v1/experiment-views', { body })));
      state.change({ view: name.trim() });
      toasts.say(`The view ${name.trim()} is saved.`);
    } catch (error) {
      toasts.error(error);
    }
  };
  const remove = async (view: View) => {
    try {
      const query = { name: view.name };
      setChanged(
        await dataOf(
          api.DELETE('/api/v1/experiment-views', { params: { query } })
        )
      );
    } catch (error) {
      toasts.error(error);
    }
  };
  return (
    <div class="det-list-choice">
      {loaded.error && (
        <ErrorBox
          title="The views could not be loaded."
          error={loaded.error}
          onRetry={() => loaded.reload()}
        />
      )}
      {views.length === 0 && !loaded.loading && !loaded.error && (
        <p class="det-list-hint">
          No view is saved yet. A view keeps search, filters, sorting, columns
          and groups.
        </p>
      )}
      <ul class="det-list-list" aria-label="Saved views">
        {views.map(view => (
          <li key={view.name} class="det-list-shown">
            <button
              type="button"
              class="det-menu-item"
              aria-pressed={view.name === state.view}
              onClick={() => {
                state.show(view.name, view.parameters);
                close();
              }}
            >
              <span class="det-list-text" title={view.name}>
                {view.name}
              </span>
            </button>
            <IconButton
              icon="trash"
              label={`Delete the view ${view.name}`}
              onClick={() => void remove(view)}
            />
          </li>
        ))}
      </ul>
      <form
        class="det-list-save"
        onSubmit={event => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField
          label="Save what is shown as"
          value={name}
          problem={
            name.trim().length > LONGEST
              ? `A name has at most ${LONGEST} characters.`
              : undefined
          }
          onChange={setName}
        />
        <Button
          look="primary"
          disabled={name.trim() === '' || name.trim().length > LONGEST}
          onClick={() => void save()}
        >
          {there ? 'Replace' : 'Save'}
        </Button>
      </form>
    </div>
  );
}
