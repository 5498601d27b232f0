import { describe, expect, it, vi } from 'vitest';

import { artifact, checkpoint, medium, streamEvent, trial } from './examples';
import { EXPERIMENT, FILES, live, MEDIA, settle } from './followedFeed';
import { held } from './scriptedTransport';

describe('what a trial logs and writes', () => {
  it('asks for what is new among media and files when it is told of them', async () => {
    const { transport, feed } = await live();
    const next = medium({ id: 2, batch: 20 });
    transport.answers.set(MEDIA, [next]);
    transport.newest.send(streamEvent('media', { last: 2 }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(feed.view.outputs?.media).toEqual([medium(), next]);
    expect(transport.requests).toContain(`GET ${MEDIA}?after=1&limit=1000`);
    expect(transport.requests).not.toContain(`GET ${FILES}`);
    const file = artifact({ path: 'log.csv' });
    transport.answers.set(FILES, [file]);
    transport.newest.send(streamEvent('artifacts', { paths: ['log.csv'] }));
    await vi.advanceTimersByTimeAsync(3000);
    expect(feed.view.outputs?.files).toEqual([file]);
    transport.forget();
    transport.newest.send(streamEvent('media', { last: 9 }, 4));
    await vi.advanceTimersByTimeAsync(3000);
    expect(transport.requests).not.toContain(`GET ${MEDIA}?after=2&limit=1000`);
    expect(feed.fileAddress(artifact({ path: 'a b/c.h5' }))).toBe(
      `/${FILES}/content?path=a%20b%2Fc.h5`
    );
  });

  it('forgets what a trial logged that begins again, and shows another when that is chosen', async () => {
    const { transport, feed } = await live();
    const again = medium({ id: 7, batch: 10 });
    transport.answers.set(MEDIA, [again]);
    transport.newest.send(streamEvent('trial', trial({ restarts: 1 })));
    await vi.advanceTimersByTimeAsync(3000);
    expect(feed.view.outputs?.media).toEqual([again]);
    transport.answers.set('master/trials/4/media', [medium({ trial_id: 4 })]);
    await feed.chooseOutputs(4);
    expect(feed.view.outputs).toEqual({
      trialId: 4,
      chosen: true,
      media: [medium({ trial_id: 4 })],
      files: []
    });
    await feed.chooseOutputs(null);
    expect(feed.view.outputs).toMatchObject({ trialId: 3, chosen: false });
  });
});

it('a checkpoint that was deleted goes, as its event says', async () => {
  const { transport, feed } = await live();
  const deleted = checkpoint({ state: 'DELETED' });
  transport.newest.send(streamEvent('checkpoint', deleted));
  await settle();
  expect(feed.view.checkpoints).toEqual([deleted]);
});

it('a look at trials does not undo what an event told of one of them', async () => {
  const { transport, feed } = await live();
  const late = held<unknown>();
  transport.answers.set(`${EXPERIMENT}/trials`, late.promise);
  transport.newest.send(
    streamEvent('metrics', { kind: 'validation', batch: 50 })
  );
  await vi.advanceTimersByTimeAsync(1000);
  transport.newest.send(streamEvent('trial', trial({ best_validation: 0.1 })));
  await settle();
  late.release([trial({ best_validation: 0.5 })]);
  await settle();
  expect(feed.view.trials[0]?.best_validation).toBe(0.1);
});
