/** The form of a fork: fields from the schema, what was typed, and what is sent. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { beforeAll, expect, test } from 'vitest';

import {
  type ConfigSection,
  defaultsOf,
  type Json,
  type JsonSchema,
  sectionsOf
} from '../../src/workspace/experiment/configSchema';
import {
  fieldOfProblem,
  fieldText,
  forkOf,
  hparamsOf,
  parsedField,
  parsedHparam,
  typedList,
  typedValue
} from '../../src/workspace/experiment/forkForm';
import { forkSections } from '../../src/workspace/experiment/forkSearch';
import { differences } from '../../src/workspace/experiment/yaml';

const PYTHON = '../.venv/bin/python';

const CONFIG: Json = {
  searcher: {
    name: 'grid',
    metric: 'error',
    smaller_is_better: true,
    max_length: { batches: 150 }
  },
  max_restarts: 5,
  scheduling_unit: 100,
  perform_initial_validation: false,
  min_validation_period: { batches: 10 },
  checkpoint_policy: 'best',
  resources: { slots_per_trial: 1, weight: 1, max_slots: null, priority: null },
  labels: []
};

const SCHEMA: JsonSchema = {
  $defs: {
    Length: {
      title: 'Length',
      type: 'object',
      properties: { batches: { type: 'integer' } }
    },
    Single: {
      type: 'object',
      properties: {
        name: { const: 'single', default: 'single' },
        metric: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null }
      }
    },
    Grid: {
      type: 'object',
      properties: {
        name: { const: 'grid', default: 'grid' },
        metric: {
          anyOf: [{ type: 'string' }, { type: 'null' }],
          default: null
        },
        smaller_is_better: { type: 'boolean', default: true },
        max_length: { $ref: '#/$defs/Length', default: { batches: 100 } }
      }
    },
    Resources: {
      type: 'object',
      properties: {
        slots_per_trial: { type: 'integer', minimum: 0, default: 1 },
        weight: { type: 'number', exclusiveMinimum: 0, default: 1 },
        max_slots: {
          anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }],
          default: null
        },
        priority: {
          anyOf: [
            { type: 'integer', minimum: 1, maximum: 99 },
            { type: 'null' }
          ],
          default: null
        }
      }
    }
  },
  type: 'object',
  properties: {
    name: { type: 'string' },
    searcher: { oneOf: [{ $ref: '#/$defs/Single' }, { $ref: '#/$defs/Grid' }] },
    max_restarts: { type: 'integer', minimum: 0, default: 5 },
    scheduling_unit: { type: 'integer', minimum: 1, default: 100 },
    perform_initial_validation: { type: 'boolean', default: false },
    min_validation_period: {
      $ref: '#/$defs/Length',
      default: { batches: 0 }
    },
    checkpoint_policy: {
      type: 'string',
      enum: ['best', 'all', 'none'],
      default: 'best'
    },
    resources: { $ref: '#/$defs/Resources' },
    labels: { type: 'array', items: { type: 'string' } }
  }
};

let sections: ConfigSection[] = [];
beforeAll(() => {
  sections = sectionsOf(SCHEMA, CONFIG);
});

const field = (path: string) =>
  sections.flatMap(({ fields }) => fields).find(each => each.path === path)!;

test('fields are made of the schema, for the kind of search that it is', () => {
  expect(sections.map(({ title }) => title)).toEqual([
    'Searcher',
    'Training',
    'Resources'
  ]);
  expect(sections[0]?.fields.map(({ path, kind }) => [path, kind])).toEqual([
    ['searcher.metric', 'text'],
    ['searcher.smaller_is_better', 'boolean'],
    ['searcher.max_length', 'length']
  ]);
  expect(field('checkpoint_policy').choices).toEqual(['best', 'all', 'none']);
  expect(field('resources.max_slots').nullable).toBe(true);
  expect(field('labels').kind).toBe('json');
});

test('what a session may not change is no field of its form', () => {
  const { resources, ...properties } = SCHEMA.properties!;
  const closed: JsonSchema = {
    ...SCHEMA,
    properties: { ...properties, resources: { ...resources, readOnly: true } }
  };
  expect(sectionsOf(closed, CONFIG).map(({ title }) => title)).toEqual([
    'Searcher',
    'Training'
  ]);
});

test('what is typed is checked by the schema', () => {
  expect(parsedField(field('resources.slots_per_trial'), '-1')).toEqual({
    problem: 'At least 0.'
  });
  expect(parsedField(field('resources.weight'), '0')).toEqual({
    problem: 'More than 0.'
  });
  expect(parsedField(field('max_restarts'), '1.5')).toEqual({
    problem: 'A whole number is needed.'
  });
  expect(parsedField(field('resources.priority'), '100')).toEqual({
    problem: 'At most 99.'
  });
  expect(parsedField(field('resources.max_slots'), '')).toEqual({
    value: null
  });
  expect(parsedField(field('searcher.max_length'), '30 epochs')).toEqual({
    value: { epochs: 30 }
  });
  expect(parsedField(field('labels'), '[1')).toHaveProperty('problem');
});

test('numbers, texts and lists are read as they were meant', () => {
  expect(typedValue('1e-4')).toBe(1e-4);
  expect(typedValue('.5')).toBe(0.5);
  expect(typedValue('adam')).toBe('adam');
  expect(typedValue('true')).toBe(true);
  expect(typedList('0.1, 1e-3, adam')).toEqual([0.1, 1e-3, 'adam']);
  expect(typedList('"a,b", 1')).toEqual(['a,b', 1]);
});

test('a constant becomes a range, and a range that is none is refused', () => {
  const [rate] = hparamsOf({ rate: { type: 'const', val: 0.1 } });
  const log = {
    ...rate!.draft,
    kind: 'log' as const,
    minval: '1e-4',
    maxval: '0.1'
  };

  expect(parsedHparam(log, rate!.spec)).toEqual({
    value: { type: 'log', minval: 1e-4, maxval: 0.1, base: 10 }
  });
  expect(parsedHparam({ ...log, maxval: '0' }, rate!.spec)).toEqual({
    problem: 'To has to be larger than from.'
  });
  expect(
    parsedHparam({ ...log, kind: 'int', maxval: '3' }, rate!.spec)
  ).toHaveProperty('problem');
  expect(parsedHparam({ ...rate!.draft, val: '' }, rate!.spec)).toHaveProperty(
    'problem'
  );
  const text = { type: 'const', val: 'adam' };
  const [named] = hparamsOf({ named: text });
  expect(parsedHparam({ ...named!.draft, val: '1' }, text)).toEqual({
    value: { type: 'const', val: '1' }
  });
});

test('a text where a number was is refused, unless the kind text is chosen', () => {
  const [rate] = hparamsOf({ rate: { type: 'const', val: 0.02 } });
  const abc = { ...rate!.draft, val: 'abc' };

  expect(parsedHparam(abc, rate!.spec)).toEqual({
    problem: 'It was a number, and this is a text: choose the kind text.'
  });
  expect(parsedHparam({ ...abc, kind: 'text' }, rate!.spec)).toEqual({
    value: { type: 'const', val: 'abc' }
  });
  expect(
    parsedHparam(abc, { type: 'double', minval: 0, maxval: 1 })
  ).toHaveProperty('problem');
  expect(parsedHparam(abc, { type: 'const', val: true })).toHaveProperty(
    'problem'
  );
  expect(
    parsedHparam(abc, { type: 'categorical', vals: [1, 'b'] })
  ).toHaveProperty('value');
  const [named] = hparamsOf({ named: { type: 'const', val: 'adam' } });
  expect(named!.draft.kind).toBe('text');
  expect(
    parsedHparam({ ...named!.draft, kind: 'const', val: '1' }, named!.spec)
  ).toEqual({ value: { type: 'const', val: 1 } });
});

test('only what has changed is sent, groups of hyperparameters nested', () => {
  const hparams = hparamsOf({
    optimizer: {
      rate: { type: 'const', val: 0.1 },
      name: { type: 'const', val: 'sgd' }
    },
    units: { type: 'int', minval: 1, maxval: 8 }
  });
  expect(hparams.map(({ path }) => path)).toEqual([
    'optimizer.rate',
    'optimizer.name',
    'units'
  ]);

  const fork = forkOf(
    sections,
    hparams,
    {
      'searcher.max_length': '300 batches',
      max_restarts: fieldText(field('max_restarts'))
    },
    { 'optimizer.rate': { ...hparams[0]!.draft, val: '0.01' } },
    ' mine '
  );

  expect(fork).toEqual({
    body: {
      name: 'mine',
      config: { searcher: { max_length: { batches: 300 } } },
      hyperparameters: { optimizer: { rate: { type: 'const', val: 0.01 } } }
    },
    problems: {},
    changes: 2
  });
});

test('a problem of the master stands at the field that it is about', () => {
  const paths = ['searcher.max_length', 'hyperparameters.rate', 'bind_mounts'];

  expect(fieldOfProblem('searcher.max_length.batches', paths)).toBe(
    'searcher.max_length'
  );
  expect(fieldOfProblem('hyperparameters.rate', paths)).toBe(
    'hyperparameters.rate'
  );
  expect(fieldOfProblem('bind_mounts[0].path', paths)).toBe('bind_mounts');
  expect(fieldOfProblem('elsewhere', paths)).toBeNull();
});

test('a configuration differs from the default where somebody has said something', () => {
  expect(
    differences(defaultsOf(SCHEMA, CONFIG), CONFIG).map(({ path }) => path)
  ).toEqual([
    'searcher.metric',
    'searcher.max_length.batches',
    'min_validation_period.batches'
  ]);
});

test.skipIf(!existsSync(PYTHON))(
  'the whole schema of the configuration makes a form without gaps',
  () => {
    const code =
      'import json; from det_native.schema.config import ExperimentConfig as C; print(json.dumps([C.model_json_schema(), C().model_dump(mode="json")]))';
    const said = execFileSync(PYTHON, ['-c', code], {
      encoding: 'utf8'
    });
    const [schema, config] = JSON.parse(said) as [JsonSchema, Json];

    const made = sectionsOf(schema, config);
    const fields = made.flatMap(each => each.fields);

    expect(fields.length).toBeGreaterThan(40);
    for (const each of fields) {
      const parsed = parsedField(each, fieldText(each));
      expect([each.path, 'problem' in parsed]).toEqual([each.path, false]);
    }
    expect(differences(defaultsOf(schema, config), config)).toEqual([]);
    const random = forkSections(schema, config, { 'searcher.name': 'random' });
    const unset = random
      .flatMap(each => each.fields)
      .filter(each => 'problem' in parsedField(each, fieldText(each)));
    expect(unset.map(({ path }) => path)).toEqual(['searcher.max_trials']);
  }
);
