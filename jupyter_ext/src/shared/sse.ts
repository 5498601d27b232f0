/** Server-sent events from pieces of text. */

export interface StreamEvent {
  readonly id: number;
  readonly event: string;
  readonly data: unknown;
}

/** Takes a stream in pieces, cut anywhere, and gives its events; comments give nothing. */
export class SseParser {
  private _rest = '';
  private _id = 0;
  private _event = '';
  private _data: string[] = [];

  /** Return the events that are complete with this piece. */
  feed(piece: string): StreamEvent[] {
    const lines = (this._rest + piece).split('\n');
    this._rest = lines.pop() ?? '';
    const found: StreamEvent[] = [];
    for (const line of lines) {
      const event = this._line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (event) {
        found.push(event);
      }
    }
    return found;
  }

  private _line(line: string): StreamEvent | null {
    if (line === '') {
      return this._flush();
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') {
      this._data.push(value);
    } else if (name === 'event') {
      this._event = value;
    } else if (name === 'id') {
      this._id = Number(value) || 0;
    }
    return null;
  }

  private _flush(): StreamEvent | null {
    const { _data: data, _event: event } = this;
    this._data = [];
    this._event = '';
    if (data.length === 0) {
      return null;
    }
    return {
      id: this._id,
      event: event || 'message',
      data: JSON.parse(data.join('\n')) as unknown
    };
  }
}
