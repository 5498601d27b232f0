/** Requests to the server extension from a page of JupyterLab. */
import type { ServerConnection } from '@jupyterlab/services';

import { withSharedEvents } from '../shared/sharedEvents';
import { FetchTransport, type Transport } from '../shared/transport';

/**
 * The way to the server extension of the Jupyter server that serves this page.
 */
export function labTransport(settings: ServerConnection.ISettings): Transport {
  const authorization: Record<string, string> = settings.token
    ? { Authorization: `token ${settings.token}` }
    : {};
  const transport = new FetchTransport(
    settings.baseUrl,
    // The page's own `fetch` refuses to be called with the settings as `this`.
    (url, init) =>
      settings.fetch.call(null, url, { ...settings.init, ...init }),
    () => authorization
  );
  return withSharedEvents(transport, serverOf(settings.baseUrl));
}

/** The server by its path, as the widget knows it. */
function serverOf(baseUrl: string): string {
  return new URL(baseUrl, location.href).pathname;
}
