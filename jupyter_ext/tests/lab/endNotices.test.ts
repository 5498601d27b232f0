import { describe, expect, it } from 'vitest';

import { type EndNotice, EndNotices, noticeOf } from '../../src/lab/endNotices';
import type { Experiment } from '../../src/shared/model';
import { experiment, listView, userError } from './facts';

const DESKTOP = { notify: [{ on: ['end', 'failure'], desktop: true }] };

function shownFor(...steps: Experiment[][]): EndNotice[] {
  const shown: EndNotice[] = [];
  const notices = new EndNotices(notice => shown.push(notice));
  for (const experiments of steps) {
    notices.take(listView({ experiments }));
  }
  return shown;
}

const going = experiment({ config: DESKTOP });
const ended = experiment({ config: DESKTOP, state: 'COMPLETED' });

describe('the end of an experiment', () => {
  it('is shown once, when it comes', () => {
    expect(shownFor([going], [ended], [ended])).toEqual([
      { id: 7, failed: false, text: 'Experiment 7: digits has completed' }
    ]);
  });

  it('is not shown of one that had ended before', () => {
    expect(shownFor([ended], [ended])).toEqual([]);
  });

  it('is shown with its error', () => {
    const failed = { ...ended, state: 'ERROR', error: userError() } as const;
    expect(noticeOf(failed)?.text).toBe(
      'Experiment 7: digits has failed: ValueError: bad shape'
    );
  });

  it('is shown only where the configuration wants it', () => {
    const silent = experiment({ state: 'COMPLETED' });
    expect(noticeOf(silent)).toBeNull();
    const failures = { notify: [{ on: ['failure'], desktop: true }] };
    expect(noticeOf({ ...ended, config: failures })).toBeNull();
    const mail = { notify: [{ on: ['end'], email: 'a@b.org' }] };
    expect(noticeOf({ ...ended, config: mail })).toBeNull();
  });
});
