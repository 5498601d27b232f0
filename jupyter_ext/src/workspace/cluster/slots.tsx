/** The slots of the master: what each is, who holds it, and how much it is used. */

import { formatBytes } from '../../shared/format';
import type { MasterInfo, SlotInfo } from '../../shared/model';
import { systemSamples } from '../../shared/requests';
import { slotName } from '../../shared/slotNames';
import { experimentAddress } from '../app/address';
import { useApi } from '../app/context';
import { useEvery } from '../data/useEvery';
import { useLoad } from '../data/useLoad';
import { Link } from '../parts/link';
import { type SlotUse, slotUses } from './slotFacts';

/** So few points say how a trial uses its machine now. */
const POINTS = 8;
const SECONDS = 4;

export function Slots({ info }: { info: MasterInfo }) {
  const api = useApi();
  const trials = [
    ...new Set(info.slots.flatMap(({ trial_id }) => trial_id ?? []))
  ].toSorted((one, other) => one - other);
  const key = trials.length > 0 ? `use ${trials.join()}` : null;
  const { data, reload } = useLoad(key, async signal => {
    const found = await Promise.all(
      trials.map(async id => {
        // The number of a trial on the master says of which experiment it is.
        const samples = await systemSamples(api, id, POINTS, signal);
        return [id, samples] as const;
      })
    );
    return new Map(found);
  });
  useEvery(SECONDS, reload);
  const machines = info.slots.some(({ node }) => Boolean(node));
  const uses = slotUses(info.slots, data ?? new Map());
  return (
    <div
      class="det-cluster-scroll"
      tabIndex={0}
      role="region"
      aria-label="Slots"
    >
      <table class="det-grid" aria-label="Slots">
        <thead>
          <tr>
            <th scope="col">Slot</th>
            {machines && <th scope="col">Machine</th>}
            <th scope="col">Device</th>
            <th scope="col">Held by</th>
            <th scope="col">Use</th>
            <th scope="col">Memory</th>
          </tr>
        </thead>
        <tbody>
          {info.slots.map(slot => (
            <SlotRow
              key={slot.id}
              slot={slot}
              machine={machines}
              use={uses.get(slot.id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SlotRow({
  slot,
  machine,
  use
}: {
  slot: SlotInfo;
  machine: boolean;
  use?: SlotUse;
}) {
  const { experiment_id: id, trial_number: number, trial_id } = slot;
  return (
    <tr>
      <td>{slot.id}</td>
      {machine && <td>{slot.node}</td>}
      <td>{slotName(slot)}</td>
      <td>
        {typeof id === 'number' ? (
          <Link to={experimentAddress(id)}>
            #{id}, trial {number ?? trial_id}
          </Link>
        ) : (
          <span class="det-cluster-muted">free</span>
        )}
      </td>
      <td>
        <Meter
          label={`Use of slot ${slot.id}`}
          share={use?.percent === undefined ? null : use.percent / 100}
          text={
            use?.percent === undefined ? '' : `${Math.round(use.percent)} %`
          }
        />
      </td>
      <td>
        <Meter
          label={`Memory of slot ${slot.id}`}
          share={
            use?.memory !== undefined && slot.memory
              ? use.memory / slot.memory
              : null
          }
          text={use?.memory === undefined ? '' : formatBytes(use.memory)}
        />
      </td>
    </tr>
  );
}

/** A bar and what it says. */
export function Meter({
  label,
  share,
  text
}: {
  label: string;
  share: number | null;
  text: string;
}) {
  if (text === '') {
    return <span class="det-cluster-muted">—</span>;
  }
  return (
    <span class="det-meter">
      {share !== null && (
        <span class="det-meter-bar" role="img" aria-label={`${label}: ${text}`}>
          <span
            style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%` }}
          />
        </span>
      )}
      <span>{text}</span>
    </span>
  );
}
