/** The address of an experiment's page, `…/lab?det-experiment=7`, which `det open 7` gives a browser. */
import type { ExperimentId } from '../../shared/model';

/** The experiment that an address asks for; null if it asks for none. */
export function experimentOf(search: string): ExperimentId | null {
  const asked = new URLSearchParams(search).get('det-experiment') ?? '';
  if (/^[1-9]\d{0,14}$/.test(asked)) {
    return Number(asked);
  }
  return /^local-[1-9]\d{0,14}$/.test(asked) ? asked : null;
}
