/** The machines of a cluster: what each has, what of it is free, and what is wrong with one. */

import { formatCount } from '../../shared/format';
import type { MasterInfo } from '../../shared/model';

export function Nodes({ info }: { info: MasterInfo }) {
  const { nodes = [], slots } = info;
  if (nodes.length === 0) {
    return <p class="det-cluster-muted">The cluster has no machine now.</p>;
  }
  return (
    <div
      class="det-cluster-scroll"
      tabIndex={0}
      role="region"
      aria-label="Machines"
    >
      <table class="det-grid" aria-label="Machines">
        <thead>
          <tr>
            <th scope="col">Machine</th>
            <th scope="col">Device</th>
            <th scope="col" class="det-number">
              Slots
            </th>
            <th scope="col" class="det-number">
              Free
            </th>
            <th scope="col">Labels</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(node => (
            <tr key={node.id}>
              <td title={node.address}>{node.name}</td>
              <td>
                {node.accelerator || (node.device === 'cuda' ? 'GPU' : 'CPU')}
              </td>
              <td class="det-number">{formatCount(node.slots ?? 0)}</td>
              <td class="det-number">
                {formatCount(freeOf(node.name, node.free ?? 0, slots))}
              </td>
              <td>
                {Object.entries(node.labels ?? {})
                  .map(([name, value]) => `${name}=${value}`)
                  .join(', ')}
              </td>
              <td>
                {node.trouble ? (
                  <span class="det-cluster-bad">{node.trouble}</span>
                ) : (
                  'ready'
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The slots of a machine that nobody uses, neither trials nor other programs. */
function freeOf(
  name: string,
  notOfOthers: number,
  slots: MasterInfo['slots']
): number {
  const held = slots.filter(
    ({ node, trial_id }) => node === name && typeof trial_id === 'number'
  );
  return Math.max(0, notOfOthers - held.length);
}
