/** Python in coloured words. Pure. */

import { classHighlighter, highlightCode } from '@lezer/highlight';
import { parser } from '@lezer/python';

export interface CodePart {
  readonly text: string;
  /** `keyword`, `string`, `comment`, `number`...; empty for plain text. */
  readonly kind: string;
}

/** Longer texts stay plain: their colours would hold up the page. */
const LONGEST = 200_000;

/** A text in parts; together they are the text. */
export function highlighted(text: string): CodePart[] {
  if (text.length > LONGEST) {
    return [{ text, kind: '' }];
  }
  const parts: CodePart[] = [];
  highlightCode(
    text,
    parser.parse(text),
    classHighlighter,
    (part, classes) =>
      parts.push({
        text: part,
        kind: classes.split(' ')[0]?.replace(/^tok-/, '') ?? ''
      }),
    () => parts.push({ text: '\n', kind: '' })
  );
  return parts;
}
