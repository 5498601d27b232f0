/** Chooses metrics that are drawn in one chart. */

import { useState } from 'preact/hooks';

import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { Checkbox, TextField } from '../parts/field';
import { shortTitle } from './chartMenu';
import type { ChartData } from './series';

const MANY = 12;

export interface MergeDialogProps {
  readonly first: ChartData;
  readonly parts: readonly string[];
  readonly charts: readonly ChartData[];
  readonly onMerge: (keys: string[]) => void;
  readonly onClose: () => void;
}

export function MergeDialog({
  parts,
  charts,
  onMerge,
  onClose
}: MergeDialogProps) {
  const [chosen, setChosen] = useState<readonly string[]>(parts);
  const [words, setWords] = useState('');
  const offered = charts.filter(({ title }) =>
    title.toLowerCase().includes(words.trim().toLowerCase())
  );
  return (
    <Dialog
      title="Several metrics in one chart"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={chosen.length < 2 && parts.length < 2}
            onClick={() => onMerge([...chosen])}
          >
            Show in one chart
          </Button>
        </>
      }
    >
      {charts.length > MANY && (
        <TextField
          label="Search"
          type="search"
          value={words}
          onChange={setWords}
        />
      )}
      <div class="det-board-choices" role="group" aria-label="Metrics">
        {offered.map(({ key, title }) => (
          <Checkbox
            key={key}
            label={shortTitle(title)}
            checked={chosen.includes(key)}
            onChange={checked =>
              setChosen(
                checked ? [...chosen, key] : chosen.filter(each => each !== key)
              )
            }
          />
        ))}
      </div>
    </Dialog>
  );
}
