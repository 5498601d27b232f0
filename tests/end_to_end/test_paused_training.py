"""Pausing a real training: whenever it is asked, the end is that of a training that was left alone, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
from faults import Cluster, Gate, Kernel
from pauses import check_that_pauses_change_nothing
from programs import TORCH_CREATE

pytestmark = pytest.mark.slow

CREATE = TORCH_CREATE.replace("settings)", "settings, max_restarts=0)")


def test_the_end_is_the_same_bit_for_bit(kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate) -> None:
    check_that_pauses_change_nothing(kernel, cluster, gate, CREATE, torch_end)
