/** Saving files that a page can reach by an address. */

import type { Address } from './api';
import type { Transport } from './transport';

/** Saves what the transport serves at an address; without a name it is the server's to say, or the last part of the address. */
export function downloadFrom(
  transport: Transport
): (address: Address, name?: string) => Promise<void> {
  return (address, name) => {
    saveAddress(transport.url(address), name);
    return Promise.resolve();
  };
}

/** Have the browser save what an address of this origin gives. */
export function saveAddress(address: string, name = ''): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}

/** Have the browser save text or bytes that the page has made. */
export function saveContent(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  saveAddress(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
