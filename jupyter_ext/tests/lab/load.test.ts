// @vitest-environment jsdom
import '../shared/browserParts';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog } from '@jupyterlab/apputils';
import {
  type INotebookTracker,
  NotebookActions,
  type NotebookPanel
} from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { languageOf, pythonKernel } from '../../src/lab/notebook/language';
import { CheckpointLoader } from '../../src/lab/notebook/load';
import type { ExecutionTracker } from '../../src/lab/notebook/tracking';

vi.stubGlobal('requestIdleCallback', (work: () => void) => setTimeout(work));

const SPECS = {
  default: 'ir',
  kernelspecs: {
    ir: { name: 'ir', language: 'R' },
    mine: { name: 'mine', language: 'python' }
  }
} as unknown as KernelSpec.ISpecModels;

const CHECKPOINT = {
  experimentId: 7,
  checkpoint: { uuid: 'u', manifest: { framework: 'torch', metadata: {} } }
} as const;

afterEach(() => {
  Dialog.flush();
  document.body.replaceChildren();
});

/** A notebook with an empty cell in front; what is inserted lands in that. */
function notebook(metadata: Record<string, unknown>, kernel: string | null) {
  const sources: string[] = [];
  const cell = {
    model: {
      type: 'code',
      sharedModel: {
        getSource: () => '',
        setSource: (source: string) => sources.push(source)
      }
    }
  };
  const panel = {
    id: 'panel',
    revealed: Promise.resolve(),
    context: { ready: Promise.resolve() },
    sessionContext: {
      session: kernel === null ? null : { kernel: { name: kernel } },
      kernelPreference: {}
    },
    content: {
      activeCell: cell,
      activeCellIndex: 0,
      scrollToItem: () => Promise.resolve(),
      activate: () => undefined,
      model: {
        getMetadata: (name: string) => metadata[name],
        defaultKernelLanguage:
          (metadata['language_info'] as { name?: string } | undefined)?.name ??
          ''
      }
    }
  } as unknown as NotebookPanel;
  return { panel, sources };
}

function loader(current: NotebookPanel | null, fresh: NotebookPanel) {
  const execute = vi.fn(() => Promise.resolve(fresh));
  const app = {
    shell: { activateById: () => undefined },
    commands: { execute },
    serviceManager: { kernelspecs: { ready: Promise.resolve(), specs: SPECS } }
  } as unknown as JupyterFrontEnd;
  const executions = { memoryOf: () => ({ alive: [] }) };
  const made = new CheckpointLoader(
    app,
    { currentWidget: current } as unknown as INotebookTracker,
    executions as unknown as ExecutionTracker
  );
  return { execute, loader: made };
}

async function answer(button: string): Promise<string> {
  await vi.waitFor(() => {
    expect(document.querySelector('.jp-Dialog-footer')).not.toBeNull();
  });
  const title = document.querySelector('.jp-Dialog-header')?.textContent ?? '';
  document.querySelector<HTMLElement>(`.jp-Dialog ${button}`)?.click();
  return title;
}

describe('loading a checkpoint', () => {
  it('goes into the Python notebook in front, without a question', async () => {
    vi.spyOn(NotebookActions, 'insertBelow');
    const { panel, sources } = notebook({}, 'mine');
    await loader(panel, panel).loader.load(CHECKPOINT);
    expect(sources.join()).toContain('det.attach(7).checkpoint("u")');
    expect(document.querySelector('.jp-Dialog')).toBeNull();
  });

  it('asks before it opens a new notebook beside one for another language', async () => {
    const other = notebook({ kernelspec: { name: 'ir' } }, null);
    const fresh = notebook({}, 'mine');
    const { execute, loader: made } = loader(other.panel, fresh.panel);
    const loaded = made.load(CHECKPOINT);
    expect(await answer('.jp-mod-accept')).toContain('is for R');
    await loaded;
    expect(execute).toHaveBeenCalledWith('notebook:create-new', {
      kernelName: 'mine'
    });
    expect(other.sources).toEqual([]);
    expect(fresh.sources.join()).toContain('det.attach(7)');
  });

  it('does nothing if that is not wanted', async () => {
    const other = notebook({ kernelspec: { name: 'ir' } }, null);
    const { execute, loader: made } = loader(other.panel, other.panel);
    const loaded = made.load(CHECKPOINT);
    await answer('.jp-mod-reject');
    await loaded;
    expect(execute).not.toHaveBeenCalled();
    expect(other.sources).toEqual([]);
  });

  it('offers a new notebook where none is open', async () => {
    const fresh = notebook({}, 'mine');
    const loaded = loader(null, fresh.panel).loader.load(CHECKPOINT);
    expect(await answer('.jp-mod-accept')).toContain('No notebook is open');
    await loaded;
    expect(fresh.sources.join()).toContain('det.attach(7)');
  });
});

describe('the language of a notebook', () => {
  it.each([
    [{}, 'ir', 'R'],
    [{ kernelspec: { name: 'ir', language: 'R' } }, 'mine', 'python'],
    [{ kernelspec: { name: 'gone', language: 'julia' } }, null, 'julia'],
    [{ language_info: { name: 'Julia' } }, null, 'Julia'],
    [{}, null, 'python']
  ])('%j with kernel %j is %s', (metadata, kernel, language) => {
    expect(languageOf(notebook(metadata, kernel).panel, SPECS)).toBe(language);
  });

  it('is known as far as the server is not there to be asked', () => {
    const { panel } = notebook({ kernelspec: { language: 'R' } }, 'ir');
    expect(languageOf(panel, null)).toBe('R');
    expect(pythonKernel(null)).toBeUndefined();
  });

  it('of a new one is Python, by the choice of the server if that is one', () => {
    expect(pythonKernel(SPECS)).toBe('mine');
    expect(pythonKernel({ ...SPECS, default: 'mine' })).toBe('mine');
    const none = {
      default: 'ir',
      kernelspecs: { ir: SPECS.kernelspecs['ir'] }
    };
    expect(pythonKernel(none)).toBe('ir');
  });
});
