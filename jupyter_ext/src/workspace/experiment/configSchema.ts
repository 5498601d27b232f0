/** The JSON schema of the configuration: fields for a form, and defaults. Pure. */

/* eslint-disable id-match -- the names are those of JSON schema */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly title?: string;
  readonly readOnly?: boolean;
}
/* eslint-enable id-match */

export type Json = Readonly<Record<string, unknown>>;

/** What a field of a form takes. */
export type FieldKind =
  'integer' | 'number' | 'boolean' | 'text' | 'choice' | 'length' | 'json';

export interface ConfigField {
  /** `searcher.max_length`. */
  readonly path: string;
  readonly label: string;
  readonly kind: FieldKind;
  readonly choices: readonly string[];
  readonly minimum?: number;
  /** The value itself is not allowed. */
  readonly above?: number;
  readonly maximum?: number;
  /** May be left empty. */
  readonly nullable: boolean;
  readonly value: unknown;
}

export interface ConfigSection {
  readonly name: string;
  readonly title: string;
  readonly fields: readonly ConfigField[];
}

const LENGTH_UNITS = ['batches', 'epochs', 'records'];

export function isObject(value: unknown): value is Json {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The schema that holds for a value: references followed, of alternatives the one that fits. */
export function resolved(
  schema: JsonSchema,
  root: JsonSchema,
  value: unknown
): JsonSchema {
  const name = schema.$ref?.split('/').at(-1);
  if (name !== undefined) {
    const found = root.$defs?.[name];
    return found
      ? { ...resolved(found, root, value), ...defaultOf(schema) }
      : schema;
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices === undefined) {
    return schema;
  }
  const options = choices
    .filter(({ type }) => type !== 'null')
    .map(option => resolved(option, root, value));
  const best = options.find(option => fits(option, value)) ?? options[0];
  return best ? { ...best, ...defaultOf(schema) } : schema;
}

function defaultOf(schema: JsonSchema): JsonSchema {
  return 'default' in schema ? { default: schema.default } : {};
}

/** Whether a section of several kinds is of this kind: by its fields that can have one value only. */
function fits(schema: JsonSchema, value: unknown): boolean {
  if (schema.properties === undefined) {
    return !isObject(value) && matchesType(schema, value);
  }
  if (!isObject(value)) {
    return false;
  }
  return Object.entries(schema.properties).every(
    ([name, { const: only }]) => only === undefined || value[name] === only
  );
}

function matchesType({ type, enum: values }: JsonSchema, value: unknown) {
  if (values) {
    return values.includes(value);
  }
  const found = Array.isArray(value) ? 'array' : typeof value;
  return type === found || (type === 'integer' && found === 'number');
}

function isNullable({ anyOf, default: standard }: JsonSchema): boolean {
  return (
    (anyOf?.some(({ type }) => type === 'null') ?? false) || standard === null
  );
}

/** `Max slots` for `max_slots`. */
export function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function isLength(schema: JsonSchema, value: unknown): boolean {
  if (schema.title === 'Length') {
    return true;
  }
  const names = isObject(value) ? Object.keys(value) : [];
  return names.length === 1 && LENGTH_UNITS.includes(names[0] ?? '');
}

/** One field, or those of a group. */
function fieldsOf(
  path: string,
  given: JsonSchema,
  root: JsonSchema,
  value: unknown
): ConfigField[] {
  const schema = resolved(given, root, value);
  // Which kind of section it is cannot be changed, nor what a page's session may not.
  if (schema.const !== undefined || given.readOnly) {
    return [];
  }
  const base = {
    path,
    label: labelOf(path.split('.').at(-1) ?? path),
    choices: (schema.enum ?? []).map(String),
    nullable: isNullable(given),
    value,
    ...(schema.minimum === undefined ? {} : { minimum: schema.minimum }),
    ...(schema.exclusiveMinimum === undefined
      ? {}
      : { above: schema.exclusiveMinimum }),
    ...(schema.maximum === undefined ? {} : { maximum: schema.maximum })
  };
  if (isLength(schema, value)) {
    return [{ ...base, kind: 'length' }];
  }
  if (schema.enum) {
    return [{ ...base, kind: 'choice' }];
  }
  if (schema.properties && isObject(value)) {
    return Object.entries(schema.properties).flatMap(([name, child]) =>
      fieldsOf(`${path}.${name}`, child, root, value[name])
    );
  }
  return [{ ...base, kind: kindOf(schema) }];
}

const KINDS: Readonly<Record<string, FieldKind>> = {
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  string: 'text'
};

function kindOf({ type = '' }: JsonSchema): FieldKind {
  return KINDS[type] ?? 'json';
}

/** What has a place of its own in the form, or is not to be set by hand. */
const LEFT_OUT = new Set([
  'name',
  'hyperparameters',
  'entrypoint',
  'workspace',
  'internal',
  'security'
]);

/** The fields of a form, section by section: how it trains first, the rest in the schema's order. */
export function sectionsOf(root: JsonSchema, config: Json): ConfigSection[] {
  const training: ConfigField[] = [];
  const sections: ConfigSection[] = [];
  for (const [name, schema] of Object.entries(root.properties ?? {})) {
    if (LEFT_OUT.has(name)) {
      continue;
    }
    const fields = fieldsOf(name, schema, root, config[name]);
    if (fields.length === 1 && fields[0]?.path === name) {
      training.push(...fields);
    } else if (fields.length > 0) {
      sections.push({ name, title: labelOf(name), fields });
    }
  }
  const search = sections.filter(({ name }) => name === 'searcher');
  const rest = sections.filter(({ name }) => name !== 'searcher');
  return [
    ...search,
    { name: 'training', title: 'Training', fields: training },
    ...rest
  ];
}

/** What a configuration would be if nothing had been said: by the schema, of sections of the same kind. */
export function defaultsOf(root: JsonSchema, config: Json): Json {
  const defaults = (given: JsonSchema, value: unknown): unknown => {
    if ('default' in given && !isObject(given.default)) {
      return given.default;
    }
    const schema = resolved(given, root, value);
    if (schema.const !== undefined) {
      return schema.const;
    }
    if (schema.properties && !isLength(schema, value)) {
      return Object.fromEntries(
        Object.entries(schema.properties).map(([name, child]) => [
          name,
          defaults(child, isObject(value) ? value[name] : undefined)
        ])
      );
    }
    if ('default' in schema) {
      return schema.default;
    }
    return schema.type === 'array'
      ? []
      : schema.type === 'object'
        ? {}
        : undefined;
  };
  return Object.fromEntries(
    Object.entries(root.properties ?? {}).map(([name, schema]) => [
      name,
      defaults(schema, config[name])
    ])
  );
}
