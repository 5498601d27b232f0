"""Parts that the attacks share: values that no honest client sends, and a measure of what refusing them costs."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
from hypothesis import strategies as st

#: What refusing a request may take. Processor time, for others use the machine too; several times what the slowest of
#: the cases takes on a quiet machine, for a busy one's caches and clock are slower.
SECONDS, MEMORY = 10.0, 200_000_000

#: Texts that parsers, databases and file systems have stumbled over.
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            *("", "\0", "a\0b", "../../etc/passwd", "..\\..\\x", "/etc/passwd", "%2e%2e%2f", "%252e%252e/"),
            *(
                "file:///etc/passwd",
                "http://169.254.169.254/latest/meta-data",
                "\u202e\u2066",
                "\ufffe",
                "e\u0301" * 50,
            ),
            *("'; DROP TABLE runs; --", "\ud800", "a\udcffb", "<script>alert(1)</script>", "\x1b[2J\x1b]0;x\x07"),
            *("{{7*7}}${7*7}", "__proto__", "x" * 70_000),
        ]
    ),
)
NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400]),
    st.floats(),
    st.sampled_from([1e308, -1e308, 5e-324]),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def deep(levels: int, kind: str = "[") -> str:
    """Return JSON text that is nested so deep."""
    return "[" * levels + "]" * levels if kind == "[" else '{"a":' * levels + "1" + "}" * levels


def json_text(value: Any) -> bytes:
    """Return JSON as an attacker writes it: with numbers that are none, and halves of surrogate pairs."""
    return json.dumps(value).encode()


@contextmanager
def cheaply(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Fail if what is done within takes more processor time of this process, or more memory, than it may."""
    process = psutil.Process()
    before, begun = process.memory_info().rss, time.process_time()
    yield
    taken, grown = time.process_time() - begun, process.memory_info().rss - before
    assert taken < seconds, f"{taken:.1f} s of processor time"
    assert grown < memory, f"{grown / 1e6:.0f} MB"


def assert_refused_or_taken(answer: httpx.Response) -> None:
    """See that an answer is no failure of the master's: a success, or a refusal in a sentence."""
    assert answer.status_code < 500, answer.text[:2000]
    if answer.status_code >= 400:
        body = answer.json()
        assert set(body) == {"error", "problems", "missing"}
        assert body["error"]
        assert "Traceback" not in answer.text
        assert len(answer.content) < 200_000


def peak() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
