/** A request that was refused, or that nobody answered. The words are for the user. */
export class RequestError extends Error {
  /**
   * @param status - HTTP status; 0 if there was no answer.
   * @param state - State of the master as `status` says it, or `refused`.
   * @param remedy - What to do.
   * @param problems - What is wrong in the request, thing by thing.
   */
  constructor(
    message: string,
    readonly status: number,
    readonly state: string,
    readonly remedy = '',
    readonly problems: ReadonlyArray<{
      where: string;
      what: string;
      remedy: string;
    }> = []
  ) {
    super(message);
    this.name = 'RequestError';
  }
}
