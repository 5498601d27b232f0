import { describe, expect, it } from 'vitest';

import { addressOf, dataOf } from '../../src/shared/api';
import {
  asRequestError,
  FetchTransport,
  RequestError,
  xsrfHeader
} from '../../src/shared/transport';
import { collect, connected, PREFIX, refused, running } from './connected';
import { answerJson, bodyOf } from './httpServer';

describe('an address', () => {
  it.each([
    ['/', '/det-native/api/master/health'],
    ['', '/det-native/api/master/health'],
    ['/user/ada', '/user/ada/det-native/api/master/health'],
    ['http://host:1/lab//', 'http://host:1/lab/det-native/api/master/health']
  ])('begins with the base %j', (base, url) => {
    const address = addressOf('/api/v1/health', {});
    expect(new FetchTransport(base).url(address)).toBe(url);
  });

  it('has what is asked for, encoded, and nothing of what is not', () => {
    const query = {
      query: 'a&b=c ü',
      state: null,
      name: undefined,
      label: ['a', 'b'],
      limit: 0,
      archived: true
    };
    expect(addressOf('/api/v1/experiments', { query })).toBe(
      '/api/v1/experiments?query=a%26b%3Dc%20%C3%BC&label=a&label=b&limit=0&archived=true'
    );
  });
});

describe('a request', () => {
  it('reads JSON, with the headers that the server wants', async () => {
    const transport = await connected((_, response) =>
      answerJson(response, { größe: [1] })
    );
    const params = { query: { limit: 5 } };
    const asked = transport.api.GET('/api/v1/experiments', { params });
    expect(await dataOf(asked)).toEqual({ größe: [1] });
    const [request] = running().requests ?? [];
    expect(request?.method).toBe('GET');
    expect(request?.url).toBe(`${PREFIX}/master/experiments?limit=5`);
    expect(request?.headers.authorization).toBe('token of-jupyter');
  });

  it('sends JSON', async () => {
    const transport = await connected((request, response) => {
      void bodyOf(request).then(body => answerJson(response, { got: body }));
    });
    expect(await transport.post('notebook-runs', { name: '<b>' })).toEqual({
      got: { name: '<b>' }
    });
    expect(running().requests[0]?.headers['content-type']).toBe(
      'application/json'
    );
    expect(await transport.post('start')).toEqual({ got: {} });
  });

  it('has nothing to read where nothing is said', async () => {
    const transport = await connected((_, response) =>
      response.writeHead(204).end()
    );
    const asked = transport.api.DELETE('/api/v1/session');
    expect(await dataOf(asked)).toBeUndefined();
  });

  it('that is refused says it in the words of the server', async () => {
    const transport = await connected((_, response) =>
      answerJson(
        response,
        {
          error: 'Cannot be sent.',
          remedy: 'Mend it.',
          problems: [{ where: 'cell 3', what: '<b>', remedy: 7 }, null]
        },
        400
      )
    );
    const error = await refused(transport.post('notebook-runs'));
    expect(error).toMatchObject({
      message: 'Cannot be sent.',
      remedy: 'Mend it.',
      status: 400
    });
    expect(error.state).toBe('refused');
    expect(error.problems).toEqual([
      { where: 'cell 3', what: '<b>', remedy: '' },
      { where: '', what: '', remedy: '' }
    ]);
  });

  it.each([
    [
      503,
      { state: 'starting', message: 'Starting.', remedy: 'Wait.' },
      'starting',
      'Starting.',
      'Wait.'
    ],
    [
      403,
      { message: 'Forbidden' },
      'unauthorised',
      'Forbidden',
      'Reload the page to sign in again.'
    ],
    [
      401,
      {},
      'refused',
      'The Jupyter server answered 401.',
      'Reload the page to sign in again.'
    ],
    [
      500,
      [],
      'refused',
      'The Jupyter server answered 500.',
      'Try again; the log of the Jupyter server says more.'
    ],
    [404, { error: 'No such trial.' }, 'refused', 'No such trial.', ''],
    [409, 'text', 'refused', 'The Jupyter server answered 409.', '']
  ])(
    'answered by %i %j has a state and words',
    async (code, body, state, message, remedy) => {
      const transport = await connected((_, response) =>
        answerJson(response, body, code)
      );
      const error = await refused(transport.get('status'));
      expect([error.status, error.state, error.message, error.remedy]).toEqual([
        code,
        state,
        message,
        remedy
      ]);
    }
  );

  it('to a server without our extension says how to enable it', async () => {
    const transport = await connected((_, response) => {
      response
        .writeHead(404, { 'Content-Type': 'text/html' })
        .end('<html>404</html>');
    });
    const error = await refused(transport.get('status'));
    expect(error.state).toBe('absent');
    expect(error.remedy).toContain(
      'jupyter server extension enable det_jupyter'
    );
  });

  it.each(['get', 'api', 'stream'] as const)(
    'that nobody answers says so (%s)',
    async kind => {
      const transport = await connected(() => undefined);
      await running().stop();
      const signal = new AbortController().signal;
      const asked =
        kind === 'get'
          ? transport.get('status')
          : kind === 'api'
            ? transport.api.GET('/api/v1/queue')
            : collect(transport.stream({ signal }));
      const error = await refused(asked);
      expect([error.status, error.state]).toEqual([0, 'unreachable']);
      expect(error.message).toBe('The Jupyter server does not answer.');
      expect(error.remedy).not.toBe('');
    }
  );

  it('that takes too long is given up', async () => {
    const transport = await connected(() => undefined, 0.02);
    expect((await refused(transport.get('status'))).state).toBe('unreachable');
    const asked = transport.api.GET('/api/v1/queue');
    expect((await refused(asked)).state).toBe('unreachable');
  });

  it('whose answer breaks off is no answer', async () => {
    const transport = await connected((_, response) => {
      response.writeHead(200, { 'Content-Length': 100 });
      response.write('[');
      setTimeout(() => response.destroy(), 5);
    });
    const asked = transport.api.GET('/api/v1/queue');
    expect((await refused(asked)).state).toBe('unreachable');
  });

  it('that is answered with something else than JSON is not taken for an answer', async () => {
    const transport = await connected((_, response) =>
      response.writeHead(200).end('<html>')
    );
    expect((await refused(transport.get('status'))).state).toBe('unreachable');
    const asked = dataOf(transport.api.GET('/api/v1/queue'));
    expect((await refused(asked)).state).toBe('unreachable');
  });

  it('that was called off is no failure in words', async () => {
    const leaving = new AbortController();
    const transport = await connected(() => leaving.abort());
    const { signal } = leaving;
    const work = transport.api.GET('/api/v1/queue', { signal });
    await expect(work).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('the XSRF header', () => {
  it.each([
    ['', {}],
    ['theme=dark', {}],
    ['a=1; _xsrf=2%7Cab; b=2', { 'X-XSRFToken': '2|ab' }],
    [
      '_xsrf=of-the-hub; _xsrf=of-the-server',
      { 'X-XSRFToken': 'of-the-server' }
    ]
  ])('of the cookies %j', (cookies, header) => {
    expect(xsrfHeader(cookies)).toEqual(header);
  });

  it('is absent where there is no page', () => {
    expect(xsrfHeader()).toEqual({});
  });
});

it('an error that has its words keeps them', () => {
  const known = new RequestError('Known.', 400, 'refused');
  expect(asRequestError(known)).toBe(known);
  expect(asRequestError(new TypeError('Failed to fetch'))).toMatchObject({
    state: 'unreachable'
  });
});
