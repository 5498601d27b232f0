/** The log of a trial: searched, filtered, followed; of a long one only the lines that are seen are drawn. */

import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';

import { saveContent } from '../../shared/download';
import type { ExperimentView } from '../../shared/model';
import { isTerminal } from '../../shared/model';
import { numberOf } from '../../shared/trialNumbers';
import { logTrial } from '../../shared/view';
import { useApi, useParameter, useSeen } from '../app/context';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Checkbox, Select, TextField } from '../parts/field';
import { Popover } from '../parts/menu';
import { Empty, Loading } from '../parts/state';
import {
  filtered,
  isFiltered,
  LEVELS,
  type LogFilter,
  logText,
  nextError,
  processOf
} from './logLines';
import { LogList } from './logList';
import { LogStore } from './logStore';
import { TrialSelect } from './trialSelect';

const CALM_MILLISECONDS = 2000;

export function LogsTab({ view }: { view: ExperimentView }) {
  const [trial, setTrial] = useParameter('trial');
  const shown = trial === '' ? (logTrial(view)?.id ?? null) : Number(trial);
  // Of most interest may be another trial in a moment: who reads stays where they are.
  const [kept, setKept] = useState(shown);
  useEffect(() => {
    if (trial !== '' || kept === null) {
      setKept(shown);
    }
  }, [trial, shown, kept]);
  const id = trial === '' ? (kept ?? shown) : shown;
  const select = (
    <TrialSelect
      view={view}
      label="Trial"
      value={trial}
      automatic={`Trial ${id === null ? '' : numberOf(view.trials, id)}: of most interest`}
      onChange={value => {
        setKept(value === '' ? (logTrial(view)?.id ?? null) : Number(value));
        setTrial(value);
      }}
    />
  );
  if (id === null) {
    return (
      <Empty title="There is no log yet.">
        It begins with the first trial.
      </Empty>
    );
  }
  return <Log key={id} view={view} trialId={id} select={select} />;
}

function useLog(view: ExperimentView, trialId: number): LogStore {
  const api = useApi();
  const seen = useSeen();
  const [, draw] = useReducer((number: number) => number + 1, 0);
  const store = useMemo(() => new LogStore(api, trialId), [api, trialId]);
  useEffect(() => {
    const end = store.subscribe(() => draw(undefined));
    return () => {
      end();
      store.dispose();
    };
  }, [store]);
  const trial = view.trials.find(({ id }) => id === trialId);
  const ended = trial !== undefined && isTerminal(trial.state);
  useEffect(() => {
    if (!seen) {
      return undefined;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const look = async () => {
      await store.newest();
      if (!over && !ended) {
        timer = setTimeout(() => void look(), CALM_MILLISECONDS);
      }
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [store, seen, ended]);
  return store;
}

function Log({
  view,
  trialId,
  select
}: {
  view: ExperimentView;
  trialId: number;
  select: preact.ComponentChildren;
}) {
  const store = useLog(view, trialId);
  const [search, setSearch] = useParameter('search');
  const [level, setLevel] = useParameter('level');
  const [process, setProcess] = useParameter('process');
  const [from, setFrom] = useParameter('from');
  const [to, setTo] = useParameter('to');
  const [jump, setJump] = useParameter('jump');
  const [times, setTimes] = useState(false);
  const [follow, setFollow] = useState(jump === '');
  const [marked, setMarked] = useState(-1);
  const filter: LogFilter = { search, level, process, from, to };
  const key = JSON.stringify(filter);
  const lines = useMemo(
    () => filtered(store.lines, filter),
    [store.lines, key]
  );
  const processes = useMemo(
    () => [...new Set(store.lines.map(({ line }) => processOf(line)))],
    [store.lines]
  ).filter(Boolean);
  const list = useRef<{ show: (index: number) => void }>(null);

  // What is looked for may stand anywhere.
  const wanted = isFiltered(filter);
  useEffect(() => {
    if (wanted) {
      void store.whole();
    }
  }, [wanted, store]);

  const toError = async () => {
    setFollow(false);
    await store.whole();
    setMarked(before => {
      const index = nextError(filtered(store.lines, filter), before);
      if (index >= 0) {
        requestAnimationFrame(() => list.current?.show(index));
      }
      return index;
    });
  };
  useEffect(() => {
    if (jump === 'error') {
      setJump('');
      void toError();
    }
  }, [jump]);
  useEffect(() => setMarked(-1), [key]);

  const download = async () => {
    await store.whole();
    saveContent(
      new Blob([logText(store.lines)], { type: 'text/plain' }),
      `experiment-${view.id}-trial-${numberOf(view.trials, trialId)}.log`
    );
  };
  const errors = useMemo(
    () => lines.some(line => line.level === 'error'),
    [lines]
  );
  return (
    <div class="det-exp-logs">
      <div class="det-exp-tools">
        {select}
        <input
          type="search"
          class="det-input"
          aria-label="Search the log"
          placeholder="Search"
          value={search}
          onInput={event => setSearch(event.currentTarget.value)}
        />
        <Select
          label="Level"
          value={level}
          choices={[
            { value: '', label: 'all' },
            ...LEVELS.filter(each => each !== 'debug').map(value => ({
              value,
              label: value === 'error' ? 'errors' : `${value} and above`
            }))
          ]}
          onChange={setLevel}
        />
        {processes.length > 1 && (
          <Select
            label="Process"
            value={process}
            choices={[
              { value: '', label: 'all' },
              ...processes.map(value => ({ value, label: value }))
            ]}
            onChange={setProcess}
          />
        )}
        <Popover label={from || to ? 'Time: limited' : 'Time'} icon="filter">
          {() => (
            <div class="det-exp-choices">
              <TextField
                label="From"
                type="datetime-local"
                step={1}
                value={from}
                onChange={setFrom}
              />
              <TextField
                label="To"
                type="datetime-local"
                step={1}
                value={to}
                onChange={setTo}
              />
              <Button
                icon="reset"
                onClick={() => {
                  setFrom('');
                  setTo('');
                }}
              >
                Any time
              </Button>
            </div>
          )}
        </Popover>
        <Checkbox label="Times" checked={times} onChange={setTimes} />
        <Checkbox label="Follow" checked={follow} onChange={setFollow} />
        <Button
          icon="warning"
          disabled={!errors && store.atBegin}
          onClick={() => void toError()}
        >
          Next error
        </Button>
        <Button icon="download" onClick={() => void download()}>
          Download
        </Button>
      </div>
      {store.error !== null && (
        <ErrorBox
          title="The log could not be loaded."
          error={store.error}
          onRetry={() => void store.newest()}
        />
      )}
      <p class="det-exp-muted" role="status">
        {wanted
          ? `${lines.length.toLocaleString('en')} of ${store.lines.length.toLocaleString('en')} lines`
          : `${lines.length.toLocaleString('en')} ${lines.length === 1 ? 'line' : 'lines'}`}
        {!store.atBegin &&
          store.known &&
          ', earlier ones come as you scroll up'}
      </p>
      {!store.known && store.error === null && (
        <Loading label="Loading the log…" />
      )}
      {store.known && lines.length === 0 ? (
        <Empty
          title={wanted ? 'No line is like that.' : 'Nothing was printed yet.'}
        />
      ) : (
        <LogList
          ref={list}
          lines={lines}
          search={search}
          times={times}
          follow={follow}
          marked={marked}
          onFollow={setFollow}
          onTop={() => void store.earlier()}
        />
      )}
    </div>
  );
}
