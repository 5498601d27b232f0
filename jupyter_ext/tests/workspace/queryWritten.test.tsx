// @vitest-environment jsdom
/** The table of experiments while a query is written. */
import { cleanup, fireEvent, screen } from '@testing-library/preact';
import { afterEach, expect, it } from 'vitest';

import { RequestError } from '../../src/shared/transport';
import { ExperimentsPage } from '../../src/workspace/experiments/page';
import { ScriptedTransport } from '../shared/scriptedTransport';
import { NAMES, row } from './experimentRows';
import { showPart } from './shownPart';

afterEach(cleanup);

function list(...ids: number[]) {
  return {
    ids,
    total: ids.length,
    notice: '',
    rows: ids.map(id => row({ id }))
  };
}

it.each(['', '&group=project'])(
  'a query that ends too early leaves the rows of the search before, dimmed, and nothing loads for good (%s)',
  async group => {
    const transport = new ScriptedTransport({
      'master/experiment-list': list(9, 8, 7),
      'master/experiment-names': NAMES,
      'master/experiment-rows': list(9, 8, 7).rows,
      'master/experiment-views': []
    });
    transport.answers.set('master/experiment-groups', {
      groups: [
        {
          value: 'vision',
          count: 3,
          measured: 3,
          mean: 0.5,
          deviation: 0.1,
          best: 0.4,
          ids: [9, 8, 7]
        }
      ],
      total: 3,
      grouped: 3,
      notice: ''
    });
    showPart(
      <ExperimentsPage />,
      transport,
      `/experiments?sort=id+desc${group}`
    );
    const shown = group === '' ? 'digits 9' : /vision/;
    await screen.findByText(shown);
    const box = screen.getByRole('combobox', { name: 'Search experiments' });
    const search = (text: string) => {
      fireEvent.input(box, { target: { value: text } });
      fireEvent.keyDown(box, { key: 'Enter' });
    };
    if (group === '') {
      transport.answers.set('master/experiment-list', list());
      search('val_loss');
      await screen.findByRole('button', { name: 'Clear search and filters' });
    }
    const refused = new RequestError('It does not parse.', 400, 'refused');
    transport.answers.set('master/experiment-list', refused);
    transport.answers.set('master/experiment-groups', refused);
    search('val_loss <');
    await screen.findByText('It does not parse.');
    await screen.findByText(shown);
    const table = screen.getByLabelText('Experiments');
    expect(table.dataset['stale']).toBe('true');
    expect(screen.queryByText(/Loading/)).toBeNull();
    expect(screen.getByText(/3 experiments of the search before/)).toBeTruthy();
    expect(screen.queryByText(/Not everything/)).toBeNull();
  }
);
