"""What ``docs/cluster.md`` says of a Ray cluster that is wrong are the sentences of the product."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_its_messages_are_those_of_the_product() -> None:
    text = (ROOT / "docs" / "cluster.md").read_text("utf-8")
    section = text.partition("### When Ray is wrong")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "det_native").rglob("*.py"))
    assert len(messages) > 12
    assert [message for message in messages if message not in source] == []
