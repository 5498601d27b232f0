/** What the page says of its Jupyter server. */

export interface Page {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Read the configuration that JupyterLab and Notebook put into their pages; null elsewhere (VS Code, a saved page). */
export function readPage(document: Document = window.document): Page | null {
  const text = document.getElementById('jupyter-config-data')?.textContent;
  const config = text ? parse(text) : {};
  const baseUrl = config.baseUrl ?? document.body.dataset.baseUrl;
  if (typeof baseUrl !== 'string') {
    return null;
  }
  const { token } = config;
  const headers: Record<string, string> =
    typeof token === 'string' && token
      ? { Authorization: `token ${token}` }
      : {};
  return { baseUrl, headers };
}

function parse(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === 'object' && found !== null
      ? (found as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}
