import { describe, expect, it } from 'vitest';

import { SseParser, type StreamEvent } from '../../src/shared/sse';

const TEXT = [
  ': ping - 2026-11-20 12:00:00\r\n\r\n',
  'id: 41\nevent: metrics\ndata: {"batch": 10}\n\n',
  'id:42\ndata:{"name":\ndata: "größe 🙂 模型"}\r\n\r\n',
  'event: nothing\n\n',
  'retry: 100\nnonsense\n: a comment\nevent: trial\ndata: [1,2]\n\n'
].join('');

const EVENTS: StreamEvent[] = [
  { id: 41, event: 'metrics', data: { batch: 10 } },
  { id: 42, event: 'message', data: { name: 'größe 🙂 模型' } },
  { id: 42, event: 'trial', data: [1, 2] }
];

function parse(pieces: readonly string[]): StreamEvent[] {
  const parser = new SseParser();
  return pieces.flatMap(piece => parser.feed(piece));
}

describe('server-sent events', () => {
  it('are read from one piece: comments and events without data are none', () => {
    expect(parse([TEXT])).toEqual(EVENTS);
  });

  it('are the same wherever the text is cut in three', () => {
    for (let first = 0; first <= TEXT.length; first++) {
      for (let second = first; second <= TEXT.length; second += 11) {
        const pieces = [
          TEXT.slice(0, first),
          TEXT.slice(first, second),
          TEXT.slice(second)
        ];
        expect(parse(pieces), `cut at ${first} and ${second}`).toEqual(EVENTS);
      }
    }
  });

  it('are the same letter by letter', () => {
    expect(parse(TEXT.split(''))).toEqual(EVENTS);
  });

  it('come as soon as they are complete, and never before', () => {
    const parser = new SseParser();
    expect(parser.feed('data: 1\n')).toEqual([]);
    expect(parser.feed('\ndata: 2')).toEqual([
      { id: 0, event: 'message', data: 1 }
    ]);
    expect(parser.feed('\n\n')).toEqual([{ id: 0, event: 'message', data: 2 }]);
  });

  it('are not told if the stream ends in their middle', () => {
    expect(parse(['data: 1\n\nid: 7\ndata: 2\n'])).toEqual([
      { id: 0, event: 'message', data: 1 }
    ]);
  });

  it('take over the id of the event before, but not its kind', () => {
    expect(
      parse(['id: 5\nevent: trial\ndata: 1\n\ndata: 2\n\nid: x\ndata: 3\n\n'])
    ).toEqual([
      { id: 5, event: 'trial', data: 1 },
      { id: 5, event: 'message', data: 2 },
      { id: 0, event: 'message', data: 3 }
    ]);
  });

  it('take one space after the colon for a separator, more for data', () => {
    expect(parse(['data:  "a"\ndata\ndata: \n\n'])).toEqual([
      { id: 0, event: 'message', data: 'a' }
    ]);
  });

  it('are refused loudly if their data are no JSON', () => {
    expect(() => parse(['data: {half\n\n'])).toThrow(SyntaxError);
  });
});
