/** What JupyterLab's own address asks for: `…/lab?det=/experiments/7/charts`, or `?det-experiment=7` of `det open 7`. */
import { experimentAddress, readAddress } from '../../workspace/app/address';
import { ADDRESS_PARAMETER } from './navigation';

const OLDER_PARAMETER = 'det-experiment';

/** An address of JupyterLab without what it asked for, so that a reload does not open that again. */
export function withoutAsked(href: string): string {
  const url = new URL(href);
  url.searchParams.delete(ADDRESS_PARAMETER);
  url.searchParams.delete(OLDER_PARAMETER);
  return url.href;
}

/** The address of the workspace that is asked for; null if none is. */
export function askedAddress(search: string): string | null {
  const parameters = new URLSearchParams(search);
  const address = parameters.get(ADDRESS_PARAMETER) ?? '';
  if (address.startsWith('/')) {
    return readAddress(address).place.page === 'unknown' ? null : address;
  }
  const experiment = parameters.get(OLDER_PARAMETER) ?? '';
  return /^[1-9]\d{0,14}$/.test(experiment)
    ? experimentAddress(Number(experiment))
    : null;
}
