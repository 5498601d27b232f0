/** Loads again and again while the workspace is seen; nothing while it is hidden. */

import { useEffect } from 'preact/hooks';

import { useSeen } from '../app/context';

export function useEvery(seconds: number, reload: () => void): void {
  const seen = useSeen();
  useEffect(() => {
    if (!seen) {
      return undefined;
    }
    const timer = setInterval(reload, seconds * 1000);
    return () => clearInterval(timer);
  }, [seen, seconds, reload]);
}
