// @vitest-environment jsdom
/** What is shown and kept without a kernel: of experiments that the master knows as the same. */
import { describe, expect, it } from 'vitest';

import '../shared/browserParts';
import { ScriptedTransport } from '../shared/scriptedTransport';
import { type NamedView, ServerViews } from '../../src/lab/output/serverViews';

const NAMED: NamedView = {
  view_id: 'one',
  experiment_id: 3,
  trial_id: 0,
  created: '2026-11-22T10:00:00Z',
  state: 'ACTIVE'
};
const KNOWN = { state: 'ACTIVE', created: NAMED.created };
const OTHER = { ...KNOWN, created: '2026-11-23T10:00:00Z' };

/** A server with these answers. */
function server(answers: Record<string, unknown>) {
  const transport = new ScriptedTransport(answers);
  return { transport, views: new ServerViews(transport) };
}

describe('the view of a display without its kernel', () => {
  it('is that of an experiment or a trial, whether it goes on or has ended since', async () => {
    const { views } = server({
      'master/experiments/3': KNOWN,
      'master/trials/7': { ...KNOWN, state: 'COMPLETED' }
    });
    expect(await views.find(NAMED)).not.toBeNull();
    expect(await views.find({ ...NAMED, trial_id: 7 })).not.toBeNull();
  });

  it('is not asked for where what was saved is the last word, or nothing says which it is', async () => {
    const { transport, views } = server({});
    expect(await views.find({ ...NAMED, state: 'COMPLETED' })).toBeNull();
    expect(await views.find({ view_id: 'of an older version' })).toBeNull();
    expect(transport.requests).toEqual([]);
  });

  it('is not that of another experiment of the same number', async () => {
    const { views } = server({ 'master/experiments/3': OTHER });
    expect(await views.find(NAMED)).toBeNull();
  });
});

describe('what a notebook keeps without a kernel', () => {
  const form = { ...KNOWN, state: 'COMPLETED', data: { 'text/plain': 'done' } };

  it('is said by the server for an experiment and a trial', async () => {
    const { views } = server({
      'saved/experiments/3': form,
      'saved/trials/7': form
    });
    expect(await views.saved(NAMED)).toEqual(form);
    expect(await views.saved({ ...NAMED, trial_id: 7 })).toEqual(form);
  });

  it('is nothing of another experiment, or of one that no master knows', async () => {
    const { views } = server({ 'saved/experiments/3': { ...form, ...OTHER } });
    expect(await views.saved(NAMED)).toBeNull();
    expect(await views.saved({ view_id: 'of an older version' })).toBeNull();
  });
});
