"""Addresses of databases as people read them."""

from __future__ import annotations

import pytest

from det_native.master.store.address import described


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://det:secret@db:5432/det", "postgresql://det:***@db:5432/det"),
        ("postgresql://det:se@cret@db/det", "postgresql://det:***@db/det"),
        ("postgresql://det:a@b@cret@db/det?password=secret", "postgresql://det:***@db/det"),
        ("sqlite:////home/me/det.db", "/home/me/det.db"),
    ],
)
def test_no_part_of_a_password_is_shown(address: str, shown: str) -> None:
    assert described(address) == shown
