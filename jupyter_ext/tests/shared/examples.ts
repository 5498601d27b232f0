/** Experiments, trials and what belongs to them for the tests, complete as the master sends them. */
import { readFileSync } from 'node:fs';

import type {
  Artifact,
  Checkpoint,
  ExperimentDetail,
  ExperimentId,
  ExperimentView,
  LogLine,
  Medium,
  MetricCurve,
  SystemSample,
  Trial
} from '../../src/shared/model';
import type { StreamEvent } from '../../src/shared/sse';
import { emptyView } from '../../src/shared/view';
import { experiment } from '../lab/facts';

export { experiment, NOW, status, userError } from '../lab/facts';

export function detail(
  change: Partial<ExperimentDetail> = {}
): ExperimentDetail {
  return {
    ...experiment(),
    report: [],
    notes: '',
    no_program: '',
    ...change
  };
}

export function trial(change: Partial<Trial> = {}): Trial {
  return {
    id: 3,
    number: change.id ?? 3,
    experiment_id: 7,
    run_id: null,
    state: 'RUNNING',
    hparams: { units: 32 },
    seed: 1,
    restarts: 0,
    notice: '',
    stopped_early: false,
    batches: 40,
    target_batches: 100,
    best_validation: 0.9,
    error: null,
    created: '2026-11-20T11:50:00Z',
    started: '2026-11-20T11:51:00Z',
    ended: null,
    ...change
  };
}

export function checkpoint(change: Partial<Checkpoint> = {}): Checkpoint {
  return {
    uuid: '0123456789abcdef',
    experiment_id: 7,
    trial_id: 3,
    batch: 40,
    state: 'COMPLETED',
    created: '2026-11-20T11:55:00Z',
    location: 'somewhere',
    manifest: {} as Checkpoint['manifest'],
    metrics: { val_accuracy: 0.9 },
    size: 1_250_000,
    metadata: {},
    pinned: false,
    trial_number: change.trial_id ?? 3,
    ...change
  };
}

export function curve(change: Partial<MetricCurve> = {}): MetricCurve {
  return {
    trial_id: 3,
    kind: 'training',
    name: 'loss',
    batch: [10, 20, 30],
    minimum: [3, 2, 1],
    maximum: [3, 2, 1],
    mean: [3, 2, 1],
    ...change
  };
}

/** A curve whose points are not reduced: minimum and maximum are the value itself. */
export function flatCurve(
  batch: number[],
  mean: Array<number | null>,
  change: Partial<MetricCurve> = {}
): MetricCurve {
  return curve({ batch, mean, minimum: mean, maximum: mean, ...change });
}

export function logLine(text: string, id = 1): LogLine {
  const time = '2026-11-20T11:55:00Z';
  return { id, trial_id: 3, run_id: 'r', stream: 'stdout', time, text };
}

export function systemSample(change: Partial<SystemSample> = {}): SystemSample {
  return {
    time: 1_800_000_000,
    rank: 0,
    metrics: { cpu_percent: 150, memory_bytes: 2e9 },
    ...change
  };
}

export function medium(change: Partial<Medium> = {}): Medium {
  const { id = 1, kind = 'image', name = 'samples' } = change;
  return {
    id,
    trial_id: 3,
    batch: 10,
    kind,
    name,
    number: 0,
    sha256: `hash of ${kind} ${name} ${id}`,
    size: 100,
    format: kind === 'image' ? 'png' : kind === 'text' ? 'txt' : 'json',
    width: null,
    height: null,
    caption: '',
    created: '2026-11-20T11:55:00Z',
    ...change
  };
}

export function artifact(change: Partial<Artifact> = {}): Artifact {
  return {
    trial_id: 3,
    path: 'best.keras',
    sha256: 'hash',
    size: 1_250_000,
    batch: 40,
    note: '',
    created: '2026-11-20T11:55:00Z',
    ...change
  };
}

export function view(change: Partial<ExperimentView> = {}): ExperimentView {
  return {
    ...emptyView(7),
    experiment: detail(),
    trials: [trial()],
    connection: { kind: 'live' },
    ...change
  };
}

/** An event as the master's stream tells it. */
export function streamEvent(
  event: string,
  data: unknown,
  trialId: number | null = 3,
  experimentId: ExperimentId = 7
): StreamEvent {
  return {
    id: 1,
    event,
    data: { experiment_id: experimentId, trial_id: trialId, data }
  };
}

/** What a name from outside may be at its worst. */
export const NASTY =
  '<img src=x onerror="alert(1)"><script>alert(2)</script>&amp;';

/** More of that kind. */
export const HOSTILE = [
  '</script><script>owned=1</script>',
  '"><iframe srcdoc="<script>parent.owned=2</script>">',
  "' onfocus=owned=3 autofocus='",
  'javascript:owned=4',
  "{{constructor.constructor('owned=5')()}}${owned=5}",
  '<svg><style onload=owned=6></svg>',
  '\u202egnp.exe',
  'long'.repeat(2_500)
];

/** The states of the master's interface, as its description says them. */
export function statesOf(name: 'ExperimentState' | 'TrialState'): string[] {
  const text = readFileSync('src/generated/openapi.json', 'utf8');
  const { components } = JSON.parse(text) as {
    components: { schemas: Record<string, { enum?: string[] }> };
  };
  return components.schemas[name]?.enum ?? [];
}

/** Parts of the view of a search. */
export const MANY = {
  trials: [trial(), trial({ id: 4, state: 'ERROR' })],
  checkpoints: [checkpoint()]
};
