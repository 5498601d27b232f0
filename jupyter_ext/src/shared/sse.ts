/** Server-sent events from pieces of text. */
import { createParser } from 'eventsource-parser';

export interface StreamEvent {
  readonly id: number;
  readonly event: string;
  readonly data: unknown;
}

/** Takes a stream in pieces, cut anywhere, and gives its events; comments give nothing. */
export class SseParser {
  private _id = 0;
  private _found: StreamEvent[] = [];
  private readonly _parser = createParser({
    onEvent: ({ id, event = 'message', data }) => {
      if (id !== undefined) {
        this._id = Number(id) || 0;
      }
      this._found.push({
        id: this._id,
        event,
        data: JSON.parse(data) as unknown
      });
    }
  });

  /** Return the events that are complete with this piece. */
  feed(piece: string): StreamEvent[] {
    this._parser.feed(piece);
    const found = this._found;
    this._found = [];
    return found;
  }
}
