"""What an error itself says last, out of a message that tells a whole story, and what to do when memory ran out."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Names of the classes by which frameworks and Python say that memory ran out.
_MEMORY_ERRORS = frozenset({"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"})
_MEMORY_WORDS = re.compile(r"out of memory|can't allocate memory|not enough memory|OOM when allocating", re.IGNORECASE)

_FRAME = re.compile(r'^(\s*)File ".*", line \d+')
_ARGUMENTS = re.compile(r"\n\s*Call arguments received by .*", re.DOTALL)
_CALLING = re.compile(r"\A\s*Exception encountered when calling [^\n]*\n\s*")
# TensorFlow's own notes after what is wrong: names of nodes, and hints about settings.
_NOTE = re.compile(r"^\s*(\[\[|\[Op:|Hint: |Node: |Detected at node |This is a non-fatal|\d+ (derived|root) error)")
_OPERATION = re.compile(r"\{\{function_node .*?\}\} |\s*\[Op:[^\]]*\](\s*name:\s*\S*)?\s*$")
_STORY = re.compile(
    r"in user code:|Graph execution error:|Original Traceback|Exception encountered when calling|\[Op:|\[\[\{\{node"
)
_FIRST_SENTENCE = re.compile(r"\A(.*?[.!?])(?:\s+|\Z)", re.DOTALL)


def own_message(error: BaseException) -> str:
    """Return the last own message of an error whose text holds frames of other code as well.

    TensorFlow puts a whole traceback into a message (``in user code:``, ``Graph execution error:``), and so do the
    workers of PyTorch's loaders. A text without any is returned as it is.
    """
    text = str(error)
    if not _STORY.search(text):
        return text
    own_class = f"{type(error).__name__}:"
    told = _ARGUMENTS.sub("", text)
    lines = told.splitlines()
    frames = [(index, match) for index, line in enumerate(lines) if (match := _FRAME.match(line))]
    if frames:
        index, match = frames[-1]
        after = list(_after_the_frames(lines[index + 1 :], len(match[1])))
    else:
        after = lines
    kept = [_OPERATION.sub("", line.strip()) for line in after if not _NOTE.match(line)]
    message = "\n".join(kept).strip().removeprefix(own_class).strip()
    while (shorter := _CALLING.sub("", message)) != message:
        message = shorter.removeprefix(own_class).strip()
    return message or _last_line(told)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, of a device or of the machine, or an error says that this was the reason."""
    return any(
        _MEMORY_ERRORS & {kind.__name__ for kind in type(each).__mro__}
        or (isinstance(each, RuntimeError | OSError) and _MEMORY_WORDS.search(str(each)))
        for each in _causes(error)
    )


def memory_advice(batch_size: int | None, slots: int = 1) -> str:
    """Return what to try when memory has run out.

    Parameters
    ----------
    batch_size : int or None
        Records per batch over all slots, where that is known.
    """
    if not batch_size:
        return "Try smaller batches or a smaller model; data that are read piece by piece take less, too."
    each = f", {batch_size // slots} on each of {slots} slots" if slots > 1 else ""
    smaller = max(batch_size // 2, slots)
    instead = f"try a smaller one, such as {smaller}. A" if smaller < batch_size else "a"
    return (
        f"The batch size is {batch_size}{each} (global_batch_size): {instead} smaller model, half precision, or data "
        "that are read piece by piece take less."
    )


def with_advice(message: str, advice: str) -> str:
    """Return the first sentence of a message, what to do about it, and the rest on lines of its own."""
    found = _FIRST_SENTENCE.match(message)
    first, rest = (found[1], message[found.end() :]) if found else (message, "")
    if first and first[-1] not in ".!?":
        first += "."
    return "\n".join(filter(None, (f"{first} {advice}".strip(), rest.strip())))


def _after_the_frames(lines: list[str], indent: int) -> Iterator[str]:
    """Yield the lines after the code of a frame, which is indented deeper than the frame."""
    reached = False
    for line in lines:
        reached = reached or (bool(line.strip()) and len(line) - len(line.lstrip()) <= indent)
        if reached:
            yield line


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__
