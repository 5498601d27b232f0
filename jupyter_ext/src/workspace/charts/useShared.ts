/** What charts share, in a component that is drawn again when it changes. */

import { useEffect, useState } from 'preact/hooks';

import type { ChartSync, Shared } from './sync';

export function useShared(sync: ChartSync): Shared {
  const [shared, setShared] = useState(sync.shared);
  useEffect(() => {
    setShared(sync.shared);
    return sync.subscribe(setShared);
  }, [sync]);
  return shared;
}
