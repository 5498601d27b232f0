/** One box for what has gone wrong: what, what to do, and the rest folded. */

import { useContext, useEffect, useRef, useState } from 'preact/hooks';

import { RequestError } from '../../shared/transport';
import { WorkspaceContext } from '../app/context';
import { Button } from './button';
import { Prose } from './prose';

export interface ErrorBoxProps {
  /** What was to be done, such as `The experiments could not be loaded.` */
  title: string;
  error: unknown;
  onRetry?: () => void;
}

export function ErrorBox({ title, error, onRetry }: ErrorBoxProps) {
  const message = error instanceof Error ? error.message : String(error);
  const request = error instanceof RequestError ? error : null;
  if (useLoss(request, onRetry)) {
    return (
      <p class="det-error-waits">
        {title} It is tried again as soon as the connection is back.
      </p>
    );
  }
  return (
    <div class="det-error" role="alert">
      <p class="det-error-title">{title}</p>
      <p class="det-error-message">
        <Prose text={`${message} ${request?.remedy ?? ''}`} />
      </p>
      {request !== null && request.problems.length > 0 && (
        <ul class="det-error-problems">
          {request.problems.map(({ where, what, remedy }) => (
            <li key={where + what}>
              {where && <code>{where}</code>}{' '}
              <Prose text={`${what} ${remedy}`} />
            </li>
          ))}
        </ul>
      )}
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

/** States of errors that the connection has nothing to do with. */
const OTHER = new Set(['refused', 'unauthorised', 'absent']);

/**
 * Whether an error only says what the banner of the workspace says already: the connection is lost.
 * What failed by it is tried again when it is back.
 */
function useLoss(error: RequestError | null, onRetry?: () => void): boolean {
  const live = useContext(WorkspaceContext)?.live;
  const [lost, setLost] = useState(live?.connection.kind === 'lost');
  const told = lost && error !== null && !OTHER.has(error.state);
  const retry = useRef(onRetry);
  retry.current = told ? onRetry : undefined;
  useEffect(
    () =>
      live?.subscribeConnection(() => {
        setLost(live.connection.kind === 'lost');
        if (live.connection.kind === 'live') {
          retry.current?.();
        }
      }),
    [live]
  );
  return told;
}
