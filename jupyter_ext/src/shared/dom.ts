/** Small helpers for building DOM. Text from outside becomes text, never markup. */

type Child = Node | string | null;

/** Make an element with a class, attributes and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  attributes: Readonly<Record<string, string>> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) {
    element.className = className;
  }
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null));
  return element;
}

/** The parts of a text: what stands between backticks in it is code. */
export function proseParts(
  text: string
): Array<{ text: string; code: boolean }> {
  return text
    .split(/`([^`\n]+)`/)
    .map((part, index) => ({ text: part, code: index % 2 === 1 }));
}

/** The nodes of such a text. */
export function prose(text: string): Node[] {
  return proseParts(text).map(part =>
    part.code
      ? make('code', '', {}, part.text)
      : document.createTextNode(part.text)
  );
}

/** A text without the backticks around code, for where only plain text can stand. */
export function plainText(text: string): string {
  return text.replace(/`([^`\n]+)`/g, '$1');
}

/** Show a text with the code in it, only if it differs. */
export function setProse(element: Element, text: string): void {
  if (element.textContent !== plainText(text)) {
    element.replaceChildren(...prose(text));
  }
}

/** Set text only if it differs: screen readers and selections are not disturbed for nothing. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Of a name that is cut, so many letters stay at its end. */
const TAIL = 8;

/** Show a name: where it is too long for its place, its middle is left out, and it is seen whole when pointed at. */
export function setName(element: HTMLElement, name: string): void {
  if (element.textContent !== name) {
    const letters = [...name];
    const end = letters.splice(-TAIL).join('');
    element.classList.add('det-middle');
    element.replaceChildren(
      make('span', '', {}, letters.join('')),
      make('span', '', {}, end)
    );
  }
  element.title = name;
}

/** A button with words and what it does. */
export function button(
  className: string,
  label: string,
  onClick: () => void
): HTMLButtonElement {
  const element = make('button', className, { type: 'button' }, label);
  element.addEventListener('click', onClick);
  return element;
}
