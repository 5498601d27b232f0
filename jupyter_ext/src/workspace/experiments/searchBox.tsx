/** The search: plain words or the query language, with what it may go on with at the cursor. */

import { useEffect, useRef, useState } from 'preact/hooks';

import type { RequestError } from '../../shared/transport';
import { Icon } from '../parts/icon';
import {
  completed,
  cursorAt,
  isUnfinished,
  type Suggestion,
  suggestions
} from './completion';
import { plainWords } from './filters';
import type { ExperimentNames } from './rows';
import { useId } from '../parts/useId';

const PAUSE_MILLISECONDS = 350;
/** Who has written half of a comparison goes on. */
const UNFINISHED_MILLISECONDS = 2000;

export interface SearchBoxProps {
  query: string;
  names: ExperimentNames | null;
  problem: RequestError | null;
  onQuery: (query: string) => void;
  /** Names may be wanted soon. */
  onFocus: () => void;
}

export function SearchBox({
  query,
  names,
  problem,
  onQuery,
  onFocus
}: SearchBoxProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(query);
  const [cursor, setCursor] = useState<number | null>(null);
  const [chosen, setChosen] = useState(-1);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const sent = useRef(query);
  const id = useId();

  useEffect(() => {
    if (query !== sent.current) {
      sent.current = query; // a view, or the back button
      setText(query);
    }
  }, [query]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const send = (value: string) => {
    clearTimeout(timer.current);
    sent.current = value;
    onQuery(value);
  };
  const write = (value: string) => {
    setText(value);
    setChosen(-1);
    clearTimeout(timer.current);
    timer.current = setTimeout(
      () => send(value),
      isUnfinished(value, names) ? UNFINISHED_MILLISECONDS : PAUSE_MILLISECONDS
    );
  };

  const place = cursor === null ? null : cursorAt(text, cursor);
  // Who types words in a name is not to be offered operators.
  const inWords =
    (plainWords(text)?.length ?? 0) > 1 && place?.expects !== 'name';
  const found = place === null || inWords ? [] : suggestions(place, names);
  const open = found.length > 0;
  const choose = (suggestion: Suggestion) => {
    const done = completed(text, place!, suggestion);
    write(done.text);
    setCursor(done.cursor);
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(done.cursor, done.cursor);
    });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (open && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      const next = chosen + step;
      setChosen(
        next >= found.length ? -1 : next < -1 ? found.length - 1 : next
      );
    } else if (event.key === 'Enter' || (event.key === 'Tab' && chosen >= 0)) {
      const suggestion = open ? found[chosen] : undefined;
      if (suggestion) {
        event.preventDefault();
        choose(suggestion);
      } else {
        send(text);
        setCursor(null);
      }
    } else if (event.key === 'Escape' && open) {
      event.preventDefault();
      event.stopPropagation();
      setCursor(null);
      setChosen(-1);
    } else if (event.key === 'ArrowDown') {
      setCursor(input.current?.selectionStart ?? text.length);
    }
  };
  const follow = () => setCursor(input.current?.selectionStart ?? null);
  return (
    <div class="det-list-search">
      <div class="det-list-search-field">
        <Icon name="search" />
        <input
          ref={input}
          class="det-input"
          type="search"
          role="combobox"
          aria-label="Search experiments"
          aria-expanded={open}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={
            open && chosen >= 0 ? `${id}-${chosen}` : undefined
          }
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-problem` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder="Words of a name, or a query: val_loss < 0.3 and label:baseline"
          value={text}
          onInput={event => {
            write(event.currentTarget.value);
            follow();
          }}
          onClick={follow}
          onFocus={onFocus}
          onBlur={() => {
            setCursor(null);
            setChosen(-1);
          }}
          onKeyUp={event => {
            if (/^(ArrowLeft|ArrowRight|Home|End)$/.test(event.key)) {
              follow();
            }
          }}
          onKeyDown={onKeyDown}
        />
        <div
          id={`${id}-list`}
          class="det-popover det-list-suggestions"
          role="listbox"
          aria-label="What the query may go on with"
          hidden={!open}
        >
          {found.map((suggestion, at) => (
            <div
              key={suggestion.text + suggestion.detail}
              id={`${id}-${at}`}
              role="option"
              class="det-list-suggestion"
              aria-selected={at === chosen}
              onPointerDown={event => {
                event.preventDefault(); // the cursor stays in the box
                choose(suggestion);
              }}
            >
              <span class="det-list-text">{suggestion.label}</span>
              <span class="det-list-id">{suggestion.detail}</span>
            </div>
          ))}
        </div>
      </div>
      {problem && (
        <pre id={`${id}-problem`} class="det-list-problem" role="alert">
          {problem.message}
        </pre>
      )}
    </div>
  );
}
