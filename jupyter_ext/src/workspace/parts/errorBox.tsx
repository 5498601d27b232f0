/** One box for what has gone wrong: what, what to do, and the rest folded. */

import { RequestError } from '../../shared/transport';
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
