// @vitest-environment jsdom
import { afterEach, describe, expect, it } from 'vitest';

import { readPage } from '../../src/widget/page';

afterEach(() => {
  document.body.replaceChildren();
  delete document.body.dataset.baseUrl;
});

function configure(text: string): void {
  const script = document.createElement('script');
  script.id = 'jupyter-config-data';
  script.type = 'application/json';
  script.textContent = text;
  document.body.append(script);
}

describe('the page', () => {
  it('of JupyterLab says where its server is, and the token if there is one', () => {
    configure('{"baseUrl": "/user/ada/", "token": "secret"}');
    expect(readPage()).toEqual({
      baseUrl: '/user/ada/',
      headers: { Authorization: 'token secret' }
    });
  });

  it.each([
    '{"baseUrl": "/"}',
    '{"baseUrl": "/", "token": ""}',
    '{"baseUrl": "/", "token": 7}'
  ])('without a token sends none: %s', text => {
    configure(text);
    expect(readPage()).toEqual({ baseUrl: '/', headers: {} });
  });

  it('of the classic notebook says it at its body', () => {
    document.body.dataset.baseUrl = '/classic/';
    expect(readPage()).toEqual({ baseUrl: '/classic/', headers: {} });
  });

  it.each(['', '{', 'null', '[]', '{"baseUrl": 7}', '{"token": "secret"}'])(
    'that says nothing of a server has none: %j',
    text => {
      configure(text);
      expect(readPage()).toBeNull();
    }
  );

  it('of no Jupyter at all has no server', () => {
    expect(readPage()).toBeNull();
  });
});
