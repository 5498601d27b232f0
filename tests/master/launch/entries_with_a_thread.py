"""Entries whose import starts a thread, which a fork would lose."""

from __future__ import annotations

import threading

from launch_entries import run

__all__ = ["run"]

threading.Thread(target=threading.Event().wait, daemon=True).start()
