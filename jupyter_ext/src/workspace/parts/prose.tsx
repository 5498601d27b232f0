/** Text that Python has written: what stands between backticks in it is code. */

import { proseParts } from '../../shared/dom';

export function Prose({ text }: { text: string }) {
  return (
    <>
      {proseParts(text).map(({ text: part, code }, index) =>
        code ? <code key={index}>{part}</code> : part
      )}
    </>
  );
}
