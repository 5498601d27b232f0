"""The executed notebook of an experiment: kept as a blob, given back, and gone with the experiment."""

from __future__ import annotations

import hashlib
import json

import pytest
from master_parts import Master
from sqlalchemy import func, select

from det_native.master.flow import unneeded_blobs
from det_native.master.store.tables import events

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def last_event(master: Master) -> int:
    with master.service.database.read() as connection:
        return int(connection.execute(select(func.max(events.c.id))).scalar() or 0)


def test_a_notebook_is_kept_and_replaced(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    number = master.create()["id"]
    path = f"/api/v1/experiments/{number}/notebook"
    answer = master.client.get(path)
    assert answer.status_code == 404
    assert "has no executed notebook" in answer.text
    assert master.get(f"/experiments/{number}")["notebook"] is None
    master.client.post(f"/api/v1/experiments/{number}/kill")
    master.until_state(number, "CANCELED")
    before = last_event(master)
    for content in (NOTEBOOK, NOTEBOOK + b"\n"):
        assert master.client.put(path, content=content).status_code == 200
        answer = master.client.get(path)
        assert answer.content == content
        assert answer.headers["Content-Disposition"] == f'attachment; filename="experiment-{number}.ipynb"'
    assert last_event(master) == before + 2, "pages that show the experiment offer it then"
    monkeypatch.setattr(unneeded_blobs, "NEW_SECONDS", -60)
    sha256 = master.get(f"/experiments/{number}")["notebook"]
    with master.service.database.read() as connection:
        assert hashlib.sha256(NOTEBOOK).hexdigest() in unneeded_blobs.unneeded(connection, master.service.blobs)
        assert sha256 not in unneeded_blobs.unneeded(connection, master.service.blobs)


def test_what_is_not_a_notebook_is_refused(master: Master) -> None:
    number = master.create()["id"]
    for content in (b"", b"{", b"[]", b'{"cells": 1, "nbformat": 4}', b'{"cells": [], "nbformat": 3}'):
        answer = master.client.put(f"/api/v1/experiments/{number}/notebook", content=content)
        assert answer.status_code == 400
        assert "not a notebook of format 4" in answer.text
    assert master.client.put("/api/v1/experiments/99/notebook", content=NOTEBOOK).status_code == 404
