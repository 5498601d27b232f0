"""A process of a trial that dies, fails or never comes: the others say so soon, in one sentence."""

from __future__ import annotations

import hmac
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
import rank_trials
import torch
from det_harness.ranks.communicator import OneProcess
from det_harness.ranks.group import joined
from det_harness.ranks.torch_communicator import TorchCommunicator
from forked_programs import SECONDS
from rank_rig import NEEDS_HOROVOD, largest_difference, run_ranks

from det_native.errors import RankLostError
from det_native.schema.job import Gang

pytestmark = pytest.mark.slow

BACKWARD = "        self.context.backward(loss)"


def gang(tmp_path: Path, rank: int, **changed: Any) -> Gang:
    made = {"size": 2, "local_rank": rank, "local_size": 2, "rendezvous": str(tmp_path / "meeting")}
    return Gang(rank=rank, **{**made, **changed})


@pytest.mark.parametrize(
    ("how", "code", "strategy", "backend"),
    [
        ("killed", 9, "ddp", "torch"),
        ("exception", 1, "ddp", "torch"),
        pytest.param("exception", 1, "fsdp", "torch", marks=pytest.mark.long),
        pytest.param("killed", 9, "ddp", "horovod", marks=NEEDS_HOROVOD),
        pytest.param("exception", 1, "ddp", "horovod", marks=[NEEDS_HOROVOD, pytest.mark.long]),
    ],
)
def test_who_loses_a_peer_says_so_at_once(tmp_path: Path, how: str, code: int, strategy: str, backend: str) -> None:
    made = {"batches": 200, "hparams": {"how": how}, "distributed": {"strategy": strategy}}
    # No time limit of these ends before the test's own: what says so is the loss itself.
    limits = {"deadline": 10 * SECONDS, "long_seconds": 10 * SECONDS}
    ended = run_ranks(tmp_path, {"dying": {"trial": "Dying", "made": made}}, backend=backend, **limits)
    assert ended.codes == [3, code], "\n".join(ended.outputs)
    kind, text = ended.error(0)
    assert kind == "RankLostError"
    assert text.startswith("Another process of this trial has ended or does not answer")
    assert "\n" not in text
    assert "caused by" not in text  # Horovod guesses at reasons
    assert ("KeyError: 'lost label'" in ended.outputs[1]) is (how == "exception")


@pytest.mark.long
def test_a_slot_that_leaves_out_the_step_of_a_batch_is_told_in_the_next(tmp_path: Path) -> None:
    ended = run_ranks(tmp_path, {"leaves_out": {"trial": "LeavesOut", "made": {"hparams": {"left_out": 2}}}})
    assert ended.codes == [3, 3], "\n".join(ended.outputs)
    errors = [ended.error(rank) for rank in range(2)]
    assert "TrialDefinitionError" in [kind for kind, _ in errors]
    for kind, text in errors:
        assert kind == "RankLostError" or "in another batch than another slot: one of them has left out a batch" in text


@pytest.mark.long
def test_slots_that_would_wait_for_each_other_for_ever_say_where(tmp_path: Path) -> None:
    case = {"trial": "LeavesOut", "made": {"batches": 8, "hparams": {"left_out": 7}}}
    ended = run_ranks(tmp_path, {"leaves_out": case}, long_seconds=1.0)
    assert ended.codes == [3, 3], "\n".join(ended.outputs)
    errors = [ended.error(rank) for rank in range(2)]
    assert "TrialDefinitionError" in [kind for kind, _ in errors]
    line = Path(rank_trials.__file__).read_text().splitlines().index(BACKWARD) + 1
    places = f"rank 0: in backward() of rank_trials.py, line {line}\n  rank 1: between two batches"
    for kind, text in errors:
        assert kind == "RankLostError" or places in text


@pytest.mark.long
def test_a_slot_that_is_only_slow_is_waited_for(tmp_path: Path) -> None:
    ended = run_ranks(tmp_path, {"slow": {"trial": "Slow", "made": {"batches": 2}}}, long_seconds=0.5)
    assert ended.codes == [0, 0], "\n".join(ended.outputs)
    assert largest_difference(*(one["models"] for one in ended.results("slow"))) == 0


@pytest.mark.long
def test_the_first_process_does_not_wait_for_ever(tmp_path: Path) -> None:
    ended = run_ranks(tmp_path, {"plain": {"trial": "PlainTrial"}}, deadline=1.0, ranks=[0])
    assert ended.error(0)[0] == "RankLostError"
    assert "Not all 2 processes of the trial were there within 1 seconds" in ended.error(0)[1]


@pytest.mark.long
def test_the_others_do_not_wait_for_ever_for_the_first(tmp_path: Path) -> None:
    patience = pytest.raises(RankLostError, match=r"did not say within 0\.05 seconds where to meet \(in .*meeting\)")
    with patience, joined(gang(tmp_path, 1), deadline=0.05):
        pass


def test_a_process_alone_exchanges_with_itself(tmp_path: Path) -> None:
    for nobody in (None, gang(tmp_path, 0, size=1)):
        with joined(nobody, "keras") as communicator:
            assert isinstance(communicator, OneProcess)
            assert communicator.all_gather_object("a") == ["a"]
            assert communicator.all_reduce_any(True, False)() == [True, False]
    assert not (tmp_path / "meeting").exists()


class Trap:
    """Does something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)

    def __init__(self, path: str) -> None:
        self.path = path


def test_nothing_is_unpickled_that_no_rank_has_signed(tmp_path: Path) -> None:
    path = str(tmp_path / "trapped")
    known, stranger = TorchCommunicator(0, 2, b"secret"), TorchCommunicator(0, 2, b"other")
    with pytest.raises(RankLostError, match="not signed by a rank of this trial"):
        known._unpacked(stranger._packed(Trap(path)))
    assert not Path(path).exists()
    assert known._unpacked(known._packed({"a": torch.ones(2).tolist()})) == {"a": [1, 1]}
    content = known._packed(3).numpy().tobytes()
    assert hmac.compare_digest(content[:32], hmac.digest(b"secret", content[32:], "sha256"))


def test_the_meeting_point_is_on_loopback_and_private(tmp_path: Path) -> None:
    with pytest.raises(RankLostError), joined(gang(tmp_path, 0), deadline=1.0):
        pass
    place = tmp_path / "meeting"
    address, _, secret = place.read_text().partition(" ")
    assert address.startswith("127.0.0.1:")
    assert len(secret) == 64
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    with pytest.raises(ConnectionRefusedError):  # it is closed again
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=5)
