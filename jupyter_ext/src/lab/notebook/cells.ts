/** The document as the front end has it: what is posted to the server extension. */
import type { ExecutionMemory } from './executions';

/** A code cell as the server extension takes it. */
export interface DocumentCell {
  id: string;
  source: string;
  execution_count: number | null;
  executed: string | null;
  tags: string[];
}

/** The part of a notebook in JSON that is read here; nbformat allows text in lines. */
export interface NotebookJSON {
  cells: ReadonlyArray<{
    cell_type: string;
    id?: unknown;
    source: string | readonly string[];
    execution_count?: unknown;
    metadata?: { tags?: unknown } | object;
  }>;
}

/** The code cells of a notebook from top to bottom, each with the text that last ran. */
export function documentCells(
  notebook: NotebookJSON,
  memory: Pick<ExecutionMemory, 'lastRan'>
): DocumentCell[] {
  return notebook.cells.flatMap((cell, position) => {
    if (cell.cell_type !== 'code') {
      return [];
    }
    const id =
      typeof cell.id === 'string' && cell.id !== ''
        ? cell.id
        : `cell-${position}`;
    return [
      {
        id,
        source:
          typeof cell.source === 'string' ? cell.source : cell.source.join(''),
        execution_count:
          typeof cell.execution_count === 'number'
            ? cell.execution_count
            : null,
        executed: memory.lastRan(id),
        tags: tagsOf(cell.metadata)
      }
    ];
  });
}

function tagsOf(metadata: object | undefined): string[] {
  const tags = (metadata as { tags?: unknown } | undefined)?.tags;
  return Array.isArray(tags)
    ? tags.filter((tag): tag is string => typeof tag === 'string')
    : [];
}
