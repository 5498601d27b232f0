/** Which language the cells of a notebook are written in. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { KernelSpec } from '@jupyterlab/services';

const PYTHON = 'python';

/** What of a notebook's panel tells its language. */
export type Speaking = {
  sessionContext: {
    session: { kernel: { name: string } | null } | null;
    kernelPreference: { name?: string };
  };
  content: Pick<NotebookPanel['content'], 'model'>;
};

/**
 * The language of a notebook, as its kernel names it: of the kernel that runs, else of the one that it asks for, else what its
 * file says; Python where nothing says anything.
 */
export function languageOf(
  { sessionContext, content }: Speaking,
  specs: KernelSpec.ISpecModels | null
): string {
  const { session, kernelPreference } = sessionContext;
  const written = content.model?.getMetadata('kernelspec') as
    { name?: string; language?: string } | undefined;
  const names = [
    session?.kernel?.name,
    kernelPreference.name,
    written?.name
  ].map(name => specs?.kernelspecs[name ?? '']?.language);
  const found = [
    ...names,
    written?.language,
    content.model?.defaultKernelLanguage
  ].find(Boolean);
  return found ?? PYTHON;
}

export function isPython(language: string): boolean {
  return language.toLowerCase() === PYTHON;
}

/** Name of a kernelspec for Python: the server's own choice, if that is one. */
export function pythonKernel(
  specs: KernelSpec.ISpecModels | null
): string | undefined {
  const speaks = (name: string) =>
    isPython(specs?.kernelspecs[name]?.language ?? '');
  const first = specs?.default;
  if (first === undefined || speaks(first)) {
    return first;
  }
  return Object.keys(specs?.kernelspecs ?? {}).find(speaks) ?? first;
}
