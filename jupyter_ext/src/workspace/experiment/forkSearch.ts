/** Which search a fork is: what its form offers, and what a range makes of an experiment of one trial. Pure. */

import {
  type ConfigField,
  type ConfigSection,
  defaultsOf,
  isObject,
  type Json,
  type JsonSchema,
  resolved,
  sectionsOf
} from './configSchema';
import type { Drafts, Hparam, HparamDraft, HparamDrafts } from './forkForm';

/** The path of the field that says which search it is. */
export const SEARCHER = 'searcher.name';

/** Searchers that a form can change to; of the others too much has to be known. */
const OFFERED = ['single', 'random', 'grid', 'adaptive_asha'];

/** How many trials a search has until the user says so. */
const TRIALS: Readonly<Record<string, number>> = {
  random: 10,
  adaptive_asha: 16
};

/** What the master keeps when another searcher takes the place of the present one. */
const KEPT = [
  'metric',
  'smaller_is_better',
  'max_length',
  'source_trial_id',
  'source_checkpoint_uuid',
  'source_optimizer'
];

/** The searcher of a configuration; empty where it names none. */
export function searcherOf(config: Json): string {
  const { searcher } = config;
  return isObject(searcher) && typeof searcher.name === 'string'
    ? searcher.name
    : '';
}

/** Whether a hyperparameter has several values. */
export function isRange({ kind }: HparamDraft): boolean {
  return kind !== 'const' && kind !== 'text';
}

/** The drafts with a random search, where a constant of one trial became a range and nobody has chosen a searcher. */
export function withSearch(
  drafts: Drafts,
  config: Json,
  hparams: readonly Hparam[],
  hparamDrafts: HparamDrafts
): Drafts {
  const before = searcherOf(config);
  const widened = hparams.some(({ path, draft }) => {
    const now = hparamDrafts[path];
    return now !== undefined && isRange(now) && !isRange(draft);
  });
  const name =
    drafts[SEARCHER] ?? (before === 'single' && widened ? 'random' : before);
  if (name === before) {
    return drafts;
  }
  const trials = TRIALS[name];
  return {
    ...(trials === undefined ? {} : { 'searcher.max_trials': String(trials) }),
    ...drafts,
    [SEARCHER]: name
  };
}

/** The sections of the form, with the fields of the searcher that is chosen. */
export function forkSections(
  root: JsonSchema,
  config: Json,
  drafts: Drafts
): ConfigSection[] {
  const before = searcherOf(config);
  const names = searchersIn(root).filter(
    name => name === before || OFFERED.includes(name)
  );
  const chosen = drafts[SEARCHER] ?? before;
  const sections = sectionsOf(
    root,
    chosen === before ? config : withKind(root, config, chosen)
  );
  const choice: ConfigField = {
    path: SEARCHER,
    label: 'Searcher',
    kind: 'choice',
    choices: names,
    nullable: false,
    value: before
  };
  return sections.map(section =>
    section.name === 'searcher' && names.includes(before)
      ? { ...section, fields: [choice, ...section.fields] }
      : section
  );
}

function searchersIn(root: JsonSchema): string[] {
  const schema = root.properties?.searcher;
  return (schema?.oneOf ?? schema?.anyOf ?? []).flatMap(option => {
    const name = resolved(option, root, undefined).properties?.name?.const;
    return typeof name === 'string' ? [name] : [];
  });
}

/** The configuration as another searcher finds it. */
function withKind(root: JsonSchema, config: Json, name: string): Json {
  const { searcher } = defaultsOf(root, { ...config, searcher: { name } });
  const before = isObject(config.searcher) ? config.searcher : {};
  const kept = KEPT.filter(field => field in before).map(
    field => [field, before[field]] as const
  );
  return {
    ...config,
    searcher: {
      ...(isObject(searcher) ? searcher : {}),
      ...Object.fromEntries(kept),
      name
    }
  };
}
