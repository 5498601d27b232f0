/** Configuration and code of two of the experiments, side by side. */

import { shortName } from '../../shared/paths';
import { useApi, useParameter } from '../app/context';
import {
  cellsText,
  fileText,
  hasProgram,
  loadProgram,
  type ProgramFile,
  type ProgramText
} from '../data/program';
import { useLoad } from '../data/useLoad';
import { yamlText } from '../experiment/yaml';
import { DiffView } from '../parts/diffView';
import { ErrorBox } from '../parts/errorBox';
import { Select } from '../parts/field';
import { Empty, Loading } from '../parts/state';
import { clipped } from '../search/shapes';
import type { Compared } from './load';

interface Pair {
  readonly before: Compared;
  readonly after: Compared;
}

/** Which two are compared; the first two by default. */
function usePair(
  experiments: readonly Compared[]
): [Pair | null, preact.ComponentChildren] {
  const [left, setLeft] = useParameter('left');
  const [right, setRight] = useParameter('right');
  const named = (text: string) =>
    experiments.find(({ id }) => String(id) === text);
  const before = named(left) ?? experiments[0];
  const after =
    named(right) ?? experiments.find(each => each !== before) ?? before;
  const choices = experiments.map(({ id, detail }) => ({
    value: String(id),
    label: `${shortName(id)} ${clipped(detail.name, 40)}`
  }));
  return [
    before && after ? { before, after } : null,
    <div class="det-plot-tools">
      <Select
        label="Before"
        value={String(before?.id ?? '')}
        choices={choices}
        onChange={setLeft}
      />
      <Select
        label="After"
        value={String(after?.id ?? '')}
        choices={choices}
        onChange={setRight}
      />
    </div>
  ];
}

const labelOf = ({ id }: Compared) => `Experiment ${shortName(id)}`;

export function ConfigurationDiff({
  experiments
}: {
  experiments: readonly Compared[];
}) {
  const [pair, tools] = usePair(experiments);
  return (
    <>
      {tools}
      {pair && (
        <DiffView
          before={yamlText(pair.before.detail.config)}
          after={yamlText(pair.after.detail.config)}
          beforeLabel={labelOf(pair.before)}
          afterLabel={labelOf(pair.after)}
          language="yaml"
        />
      )}
    </>
  );
}

export function CodeDiff({
  experiments
}: {
  experiments: readonly Compared[];
}) {
  const [pair, tools] = usePair(experiments);
  return (
    <>
      {tools}
      {pair && (
        <Programs key={`${pair.before.id}/${pair.after.id}`} {...pair} />
      )}
    </>
  );
}

function Programs({ before, after }: Pair) {
  const api = useApi();
  const absent = [before, after].find(({ detail }) => !hasProgram(detail));
  const { data, error, ...loaded } = useLoad<Array<ProgramText | null>>(
    absent ? null : `programs ${before.id} ${after.id}`,
    signal =>
      Promise.all(
        [before, after].map(({ detail }) => loadProgram(api, detail, signal))
      )
  );
  if (absent) {
    return (
      <Empty title={`The program of ${shortName(absent.id)} is not here.`}>
        {absent.detail.no_program || 'This experiment was created without one.'}
      </Empty>
    );
  }
  if (error) {
    return (
      <ErrorBox
        title="The programs could not be loaded."
        error={error}
        onRetry={() => loaded.reload()}
      />
    );
  }
  const [first, second] = data ?? [];
  if (!first || !second) {
    return <Loading rows={8} label="Loading the programs…" />;
  }
  const code = (program: ProgramText) =>
    program.kind === 'cells' ? cellsText(program) : `${program.command}\n`;
  return (
    <>
      <h2 class="det-plot-heading">
        {first.kind === 'cells' ? 'Cells' : 'Command'}
      </h2>
      <DiffView
        before={code(first)}
        after={code(second)}
        beforeLabel={labelOf(before)}
        afterLabel={labelOf(after)}
        language={first.kind === 'cells' ? 'python' : 'shell'}
      />
      <Files programs={[first, second]} sides={[before, after]} />
      <Others programs={[first, second]} />
    </>
  );
}

const MOST_FILES = 100;

function Files({
  programs: [first, second],
  sides: [before, after]
}: {
  programs: readonly [ProgramText, ProgramText];
  sides: readonly [Compared, Compared];
}) {
  const [shown, setShown] = useParameter('file', '', { push: true });
  const old = new Map(first.files.map(file => [file.path, file]));
  const now = new Map(second.files.map(file => [file.path, file]));
  const changed = [...new Set([...old.keys(), ...now.keys()])].filter(
    path => old.get(path)?.sha256 !== now.get(path)?.sha256
  );
  const path = changed.includes(shown) ? shown : changed[0];
  if (path === undefined) {
    return (
      <p class="det-plot-note">
        {old.size + now.size === 0
          ? 'No files were sent along.'
          : 'The files that were sent along are the same.'}
      </p>
    );
  }
  return (
    <>
      <h2 class="det-plot-heading">
        {`Files that differ (${changed.length.toLocaleString('en')})`}
      </h2>
      <div class="det-plot-tools">
        <Select
          label="File"
          value={path}
          choices={changed.slice(0, MOST_FILES).map(name => ({
            value: name,
            label: clipped(name, 80)
          }))}
          onChange={setShown}
        />
      </div>
      <FileDiff
        key={path}
        files={[old.get(path), now.get(path)]}
        sides={[before, after]}
      />
    </>
  );
}

function FileDiff({
  files,
  sides: [before, after]
}: {
  files: ReadonlyArray<ProgramFile | undefined>;
  sides: readonly [Compared, Compared];
}) {
  const api = useApi();
  const key = files.map(file => file?.sha256 ?? '').join(' ');
  const { data, error } = useLoad(`files ${key}`, signal =>
    Promise.all(
      files.map(file =>
        file ? fileText(api, file, signal) : Promise.resolve({ text: '' })
      )
    )
  );
  if (error) {
    return <ErrorBox title="The file could not be loaded." error={error} />;
  }
  const [old, now] = data ?? [];
  if (!old || !now) {
    return <Loading label="Loading the file…" />;
  }
  const problem = [old, now].find(each => 'problem' in each);
  return problem && 'problem' in problem ? (
    <p class="det-plot-note">{`It differs. ${problem.problem}`}</p>
  ) : (
    <DiffView
      before={'text' in old ? old.text : ''}
      after={'text' in now ? now.text : ''}
      beforeLabel={labelOf(before)}
      afterLabel={labelOf(after)}
    />
  );
}

/** Values and packages that are not the same. */
function Others({
  programs: [first, second]
}: {
  programs: readonly [ProgramText, ProgramText];
}) {
  const lines: string[] = [];
  const old = new Map(first.sent.map(value => [value.name, value]));
  const now = new Map(second.sent.map(value => [value.name, value]));
  for (const name of new Set([...old.keys(), ...now.keys()])) {
    const [one, other] = [old.get(name), now.get(name)];
    if (one?.sha256 !== other?.sha256) {
      lines.push(
        `Sent value ${clipped(name, 60)}: ${one?.what ?? 'missing'} → ${other?.what ?? 'missing'}`
      );
    }
  }
  if (first.python !== second.python) {
    lines.push(`Python: ${first.python} → ${second.python}`);
  }
  const packages = new Set([
    ...Object.keys(first.packages),
    ...Object.keys(second.packages)
  ]);
  for (const name of [...packages].sort()) {
    const [one, other] = [first.packages[name], second.packages[name]];
    if (one !== other) {
      lines.push(`${name}: ${one ?? 'missing'} → ${other ?? 'missing'}`);
    }
  }
  return lines.length === 0 ? null : (
    <>
      <h2 class="det-plot-heading">Values and packages that differ</h2>
      <ul class="det-compare-others">
        {lines.map(line => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  );
}
