/** Whether an element can be seen. */

const PATIENCE_MILLISECONDS = 1500;

/**
 * Tell whether an element is seen: on the screen (or just beyond it), in a page that is shown. What is hidden for a
 * moment only, while it is scrolled by or moved, counts as seen. Returns what ends it.
 */
export function watchVisibility(
  element: HTMLElement,
  listener: (visible: boolean) => void
): () => void {
  let reported = true;
  let near = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = () => {
    const visible = near && !document.hidden;
    if (visible !== reported) {
      reported = visible;
      listener(visible);
    }
  };
  const look = () => {
    clearTimeout(timer);
    if (near && !document.hidden) {
      tell();
    } else {
      timer = setTimeout(tell, PATIENCE_MILLISECONDS);
    }
  };
  const observer = new IntersectionObserver(
    entries => {
      near = entries[entries.length - 1]?.isIntersecting ?? near;
      look();
    },
    { rootMargin: '300px' }
  );
  observer.observe(element);
  document.addEventListener('visibilitychange', look);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    document.removeEventListener('visibilitychange', look);
  };
}
