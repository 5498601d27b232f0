/** The rows of the table in a part of the page: asked for while it is there, live while it is seen. */

import { useEffect, useMemo, useState } from 'preact/hooks';

import { useWorkspace } from '../app/context';
import { type Book, type Question, RowBook } from './rowBook';

export function useBook(question: Question): { book: RowBook; view: Book } {
  const { host, live } = useWorkspace();
  const book = useMemo(() => new RowBook(host.transport.api), [host]);
  const [view, setView] = useState(book.view);
  useEffect(() => {
    const ends = [
      book.subscribe(() => setView(book.view)),
      live.subscribe(changed => book.changed(changed))
    ];
    return () => {
      ends.forEach(end => end());
      book.dispose();
    };
  }, [book, live]);
  const key = JSON.stringify(question);
  useEffect(() => book.ask(question), [book, key]);
  return { book, view };
}
