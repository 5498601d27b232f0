/** The configuration that an experiment has, whole, and where it is not the default. */

import { useMemo } from 'preact/hooks';

import { dataOf } from '../../shared/api';
import { saveContent } from '../../shared/download';
import type { ExperimentView } from '../../shared/model';
import { useApi, useParameter, useWorkspace } from '../app/context';
import { useLoad } from '../data/useLoad';
import { Button } from '../parts/button';
import { ErrorBox } from '../parts/errorBox';
import { Select } from '../parts/field';
import { Empty, Loading } from '../parts/state';
import { defaultsOf, type JsonSchema } from './configSchema';
import { differences, yamlText } from './yaml';

export function ConfigurationTab({ view }: { view: ExperimentView }) {
  const api = useApi();
  const { toasts } = useWorkspace();
  const [shown, setShown] = useParameter('show', '', { push: true });
  const config = view.experiment?.config ?? {};
  const text = useMemo(() => yamlText(config), [view.experiment?.config]);
  const schema = useLoad(
    shown === 'changes' ? 'configuration schema' : null,
    signal => dataOf(api.GET('/api/v1/configuration-schema', { signal }))
  );
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toasts.say('The configuration is copied.');
    } catch {
      toasts.error(new Error('The browser does not copy here.'));
    }
  };
  if (Object.keys(config).length === 0) {
    return <Empty title="This experiment has no configuration." />;
  }
  return (
    <>
      <div class="det-exp-tools">
        <Select
          label="Show"
          value={shown}
          choices={[
            { value: '', label: 'The whole configuration' },
            { value: 'changes', label: 'What is not the default' }
          ]}
          onChange={setShown}
        />
        <Button icon="copy" onClick={() => void copy()}>
          Copy
        </Button>
        <Button
          icon="download"
          onClick={() =>
            saveContent(
              new Blob([`${text}\n`], { type: 'application/yaml' }),
              `experiment-${view.id}.yaml`
            )
          }
        >
          Download
        </Button>
      </div>
      {shown === 'changes' ? (
        <>
          {schema.error && (
            <ErrorBox
              title="The defaults could not be loaded."
              error={schema.error}
              onRetry={() => schema.reload()}
            />
          )}
          {schema.data === null && schema.loading && <Loading />}
          {schema.data && <Changes schema={schema.data} config={config} />}
        </>
      ) : (
        <pre class="det-exp-code" tabIndex={0} aria-label="Configuration">
          {text}
        </pre>
      )}
    </>
  );
}

function Changes({
  schema,
  config
}: {
  schema: JsonSchema;
  config: Readonly<Record<string, unknown>>;
}) {
  const found = useMemo(
    () => differences(defaultsOf(schema, config), config),
    [schema, config]
  );
  if (found.length === 0) {
    return <Empty title="Everything is as by default." />;
  }
  return (
    <div class="det-exp-scroll">
      <table class="det-grid" aria-label="What is not the default">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Here</th>
            <th scope="col">By default</th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ path, before, after }) => (
            <tr key={path}>
              <td>
                <code>{path}</code>
              </td>
              <td>
                <pre>{valueText(after)}</pre>
              </td>
              <td class="det-exp-muted">
                <pre>{valueText(before)}</pre>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function valueText(value: unknown): string {
  return value === undefined || value === null ? '—' : yamlText(value);
}
