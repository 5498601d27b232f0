// @vitest-environment jsdom
import '../shared/browserParts';
import { Widget } from '@lumino/widgets';
import { expect, it, vi } from 'vitest';

import { ExperimentPage } from '../../src/lab/page/page';
import { detail, trial } from '../shared/examples';
import { ScriptedTransport } from '../shared/scriptedTransport';

it("the name of a page is cut for JupyterLab's status bar, and whole in the tip of its tab", async () => {
  const name = 'a search of learning rates '.repeat(6);
  const experiment = 'master/experiments/7';
  const transport = new ScriptedTransport({
    [experiment]: detail({ name }),
    [`${experiment}/trials`]: [trial()],
    [`${experiment}/checkpoints`]: [],
    [`${experiment}/curves`]: [],
    'master/trials/3/logs': []
  });
  const page = new ExperimentPage({
    experimentId: 7,
    transport,
    onLoad: vi.fn()
  });
  Widget.attach(page, document.body);
  await vi.waitFor(() =>
    expect(page.title.label).toBe('#7 a search of learning rat…learning rates')
  );
  expect(page.title.caption).toBe(`Experiment 7: ${name}`);
  page.dispose();
});
