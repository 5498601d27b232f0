/** The master's REST interface, typed by its own description, from which the build makes `generated/rest.ts`. */

import createClient, {
  type Client,
  createFinalURL,
  createQuerySerializer,
  type ParamsOption
} from 'openapi-fetch';

import type { paths } from '../generated/rest';
import { RequestError } from './requestError';

/** Asks the master: `api.GET('/api/v1/experiments/{experiment_id}', {params, signal})`. */
export type Api = Client<paths, 'application/json'>;

/** Address of a route on the master, with its parameters: `/api/v1/trials/3/logs?last=50`. */
export type Address = string & { readonly [ADDRESS]: true };
declare const ADDRESS: unique symbol;

/** Sends a request, and has the whole answer; rejects with a `RequestError` where it is refused. */
export type Send = (address: Address, init: RequestInit) => Promise<Response>;

/** What openapi-fetch makes of a call; a browser's own `Request` takes whole addresses only. */
class Call {
  constructor(
    readonly address: string,
    readonly init: RequestInit & { headers: Headers }
  ) {}
}

/** The interface over a way to send requests. */
export function createApi(send: Send): Api {
  return createClient<paths, 'application/json'>({
    Request: Call as unknown as typeof Request,
    pathSerializer,
    fetch: given => {
      const { address, init } = given as unknown as Call;
      const headers = Object.fromEntries(init.headers);
      return send(address as Address, { ...init, headers });
    }
  });
}

/** The routes that are read. */
type ReadPath = {
  [Path in keyof paths]: paths[Path] extends { get: object } ? Path : never;
}[keyof paths];

/** Address of a route, for links and downloads. */
export function addressOf<Path extends ReadPath>(
  path: Path,
  params: NonNullable<ParamsOption<paths[Path]['get']>['params']>
): Address {
  return createFinalURL(path, {
    baseUrl: '',
    params,
    pathSerializer,
    querySerializer: createQuerySerializer()
  }) as Address;
}

/** Encodes all but the slashes of a file's path. */
function pathSerializer(
  path: string,
  params: Readonly<Record<string, unknown>>
): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(params[name]);
    return name === 'path'
      ? value.split('/').map(encodeURIComponent).join('/')
      : encodeURIComponent(value);
  });
}

/** The content of an answer, and its head. */
export interface Answer<Data> {
  readonly data: Data;
  readonly response: Response;
}

/** Wait for an answer; what is refused, the transport has thrown already. */
export async function answerOf<Data>(
  asked: Promise<{ data?: Data; response: Response }>
): Promise<Answer<Data>> {
  try {
    const { data, response } = await asked;
    return { data: data as Data, response };
  } catch (error) {
    throw error instanceof SyntaxError ? NO_JSON() : error;
  }
}

/** Wait for the content of an answer. */
export async function dataOf<Data>(
  asked: Promise<{ data?: Data; response: Response }>
): Promise<Data> {
  return (await answerOf(asked)).data;
}

const NO_JSON = () =>
  new RequestError(
    'The answer of the master cannot be read.',
    0,
    'unreachable',
    'Check what is between this page and the master, such as a proxy.'
  );
