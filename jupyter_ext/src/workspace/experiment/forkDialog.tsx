/** Submits the program of an experiment once more, with other hyperparameters and another configuration. */

import { useMemo, useRef, useState } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import type { ExperimentView } from '../../shared/model';
import { ofExperiment } from '../../shared/requests';
import type { RequestError } from '../../shared/transport';
import { experimentAddress } from '../app/address';
import { useApi, useWorkspace } from '../app/context';
import { asError, useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { ErrorBox } from '../parts/errorBox';
import { TextField } from '../parts/field';
import { Loading } from '../parts/state';
import { ConfigInput, HparamInput } from './forkFields';
import {
  type Drafts,
  fieldOfProblem,
  forkOf,
  type HparamDrafts,
  hparamsOf
} from './forkForm';
import { forkSections, SEARCHER, searcherOf, withSearch } from './forkSearch';

export function ForkDialog({
  view,
  onClose
}: {
  view: ExperimentView;
  onClose: () => void;
}) {
  const api = useApi();
  const { host, toasts } = useWorkspace();
  const { id, experiment } = view;
  const config = experiment?.config ?? {};
  const schema = useLoad('configuration schema', signal =>
    dataOf(api.GET('/api/v1/configuration-schema', { signal }))
  );
  const hparams = useMemo(() => hparamsOf(config.hyperparameters), []);
  const [name, setName] = useState('');
  const [typed, setTyped] = useState<Drafts>({});
  const [hparamDrafts, setHparamDrafts] = useState<HparamDrafts>({});
  const [tried, setTried] = useState(false);
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLDivElement>(null);

  const drafts = withSearch(typed, config, hparams, hparamDrafts);
  const searcher = drafts[SEARCHER] ?? searcherOf(config);
  const sections = useMemo(
    () => (schema.data ? forkSections(schema.data, config, drafts) : []),
    [schema.data, searcher]
  );
  const fork = forkOf(sections, hparams, drafts, hparamDrafts, name);
  const paths = [
    ...sections.flatMap(({ fields }) => fields.map(({ path }) => path)),
    ...hparams.map(({ path }) => `hyperparameters.${path}`)
  ];
  const refused = new Map(
    (error?.problems ?? []).map(({ where, what, remedy }) => [
      fieldOfProblem(where, paths) ?? '',
      `${what} ${remedy}`.trim()
    ])
  );
  const problemOf = (path: string) =>
    (tried ? fork.problems[path] : undefined) ?? refused.get(path);
  const wrong = paths.filter(path => problemOf(path) !== undefined);

  const send = async () => {
    setTried(true);
    setError(null);
    if (Object.keys(fork.problems).length > 0) {
      showProblem(form.current);
      return;
    }
    setBusy(true);
    try {
      const made = await dataOf(
        api.POST('/api/v1/experiments/{experiment_id}/fork', {
          params: ofExperiment(id),
          body: fork.body
        })
      );
      toasts.say(`Experiment ${made.id} is a fork of experiment ${id}.`);
      onClose();
      host.navigation.open(experimentAddress(made.id));
    } catch (reason) {
      setError(asError(reason));
      setBusy(false);
      showProblem(form.current);
    }
  };
  return (
    <Dialog
      title={`Fork experiment ${id} with changes`}
      wide
      onClose={onClose}
      footer={
        <>
          <span class="det-exp-muted det-exp-grow" role="status">
            {wrong.length > 0
              ? `${wrong.length} ${wrong.length === 1 ? 'field needs' : 'fields need'} a correction.`
              : fork.changes === 0
                ? 'Nothing is changed yet.'
                : `${fork.changes} ${fork.changes === 1 ? 'change' : 'changes'}.`}
          </span>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={busy || schema.data === null}
            onClick={() => void send()}
          >
            {fork.changes === 0 && Object.keys(fork.problems).length === 0
              ? 'Fork unchanged'
              : 'Fork'}
          </Button>
        </>
      }
    >
      <div ref={form} class="det-exp-form">
        <TextField
          label="Name"
          value={name}
          placeholder={`Fork of ${experiment?.name ?? id}`}
          maxLength={1000}
          onChange={setName}
        />
        {error !== null && wrong.length === 0 && (
          <ErrorBox title="It was not forked." error={error} />
        )}
        {hparams.length > 0 && (
          <fieldset class="det-exp-fieldset">
            <legend>Hyperparameters</legend>
            {hparams.map(({ path, draft }) => (
              <HparamInput
                key={path}
                name={path}
                draft={hparamDrafts[path] ?? draft}
                single={searcher === 'single'}
                problem={problemOf(`hyperparameters.${path}`)}
                onChange={changed =>
                  setHparamDrafts({ ...hparamDrafts, [path]: changed })
                }
              />
            ))}
            {drafts !== typed && typed[SEARCHER] === undefined && (
              <p class="det-exp-muted" role="status">
                A range makes it a search: the searcher is {searcher} now.
                Change it and its number of trials below.
              </p>
            )}
          </fieldset>
        )}
        {schema.error && (
          <ErrorBox
            title="The rest of the form could not be loaded."
            error={schema.error}
            onRetry={() => schema.reload()}
          />
        )}
        {schema.loading && schema.data === null && <Loading rows={4} />}
        {sections.map(section => (
          <details
            key={section.name}
            class="det-exp-fold"
            open={
              section.name === 'searcher' ||
              section.fields.some(({ path }) => problemOf(path))
            }
          >
            <summary>{section.title}</summary>
            <div class="det-exp-fields">
              {section.fields.map(field => (
                <ConfigInput
                  key={field.path}
                  field={field}
                  text={drafts[field.path]}
                  problem={problemOf(field.path)}
                  onChange={text => setTyped({ ...typed, [field.path]: text })}
                />
              ))}
            </div>
          </details>
        ))}
      </div>
    </Dialog>
  );
}

/** Bring the first field that needs a correction into sight, once it is drawn. */
function showProblem(form: HTMLElement | null): void {
  requestAnimationFrame(() => {
    const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.focus();
    field?.scrollIntoView?.({ block: 'center' });
  });
}
