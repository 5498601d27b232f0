/** Dialogs: the browser's own element keeps the keyboard inside and closes with Escape. */

import { type ComponentChildren, render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { Button } from './button';
import { useId } from './useId';

export interface DialogProps {
  title: string;
  children?: ComponentChildren;
  /** Buttons in the last row. The button that cancels is called Cancel. */
  footer: ComponentChildren;
  onClose: () => void;
  /** Room for a form or a table. */
  wide?: boolean;
}

/** A dialog that is open as long as it is drawn. */
export function Dialog({
  title,
  children,
  footer,
  onClose,
  wide
}: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="det-dialog"
      data-wide={wide}
      aria-labelledby={heading}
      onCancel={event => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={heading}>{title}</h2>
      <div class="det-dialog-body">{children}</div>
      <div class="det-dialog-footer">{footer}</div>
    </dialog>
  );
}

export interface Question {
  title: string;
  body?: ComponentChildren;
  /** What is done if the user agrees: `Delete`, `Kill`. */
  action: string;
  danger?: boolean;
}

let host: HTMLElement | null = null;

/** The place of questions; one in each workspace. */
export function DialogHost() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    return () => {
      if (element !== null) {
        render(null, element);
      }
    };
  }, []);
  return <div ref={place} class="det-questions" />;
}

/** Ask the user; resolves to whether they agree. `near` is any element of the workspace. */
export function confirm(near: Element, question: Question): Promise<boolean> {
  host =
    near.closest('.det-app')?.querySelector<HTMLElement>('.det-questions') ??
    host;
  const place = host;
  if (place === null) {
    return Promise.resolve(false);
  }
  return new Promise(resolve => {
    const answer = (agreed: boolean) => {
      render(null, place);
      resolve(agreed);
    };
    render(
      <Dialog
        title={question.title}
        onClose={() => answer(false)}
        footer={
          <>
            <Button onClick={() => answer(false)}>Cancel</Button>
            <Button
              look={question.danger ? 'danger' : 'primary'}
              onClick={() => answer(true)}
            >
              {question.action}
            </Button>
          </>
        }
      >
        {question.body}
      </Dialog>,
      place
    );
  });
}
