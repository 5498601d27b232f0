"""Unchanged code in the roles of ``TF_CONFIG``: chief, worker, ps and evaluator, to the end and with one killed.

What each does is TensorFlow's: ``run_chief``, ``run_master``, ``run_ps``, ...
"""

from __future__ import annotations

import json
import platform
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, checkpoint_at, ended, events_until, running_cluster
from unchanged_script import UNCHANGED

from det_native.client.handles import Experiment
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

STEPS = 40
SLACK = 25

# ``det`` on a machine that allows no namespaces: all that it starts inherits the filter (seccomp).
NO_NAMESPACES = """
import ctypes, platform, struct

number = {"x86_64": 272, "aarch64": 97}[platform.machine()]  # of unshare
load, if_other, refuse, allow = (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in (load, if_other, refuse, allow)))
program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
library = ctypes.CDLL(None)
assert library.prctl(38, 1, 0, 0, 0) == 0 and library.prctl(22, 2, program, 0, 0) == 0

from det_native.client.command import main

main()
"""
ROLES = {"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A master of its own, which is also the one that handles in this process find."""
    with running_cluster(tmp_path, "tf_estimator", slots="3") as started:
        monkeypatch.setenv("DET_HOME", str(started.home.path))
        yield started


def submitted(
    cluster: Cluster,
    arguments: str,
    *,
    trusted: bool,
    source: str = UNCHANGED,
    roles: dict[str, int] = ROLES,
) -> Experiment:
    path, folder = written(cluster, arguments, trusted=trusted, source=source, roles=roles)
    printed = cluster.det("experiment", "create", str(path), str(folder), "--json")
    return cluster.attach(json.loads(printed.splitlines()[-1])["id"])


def written(
    cluster: Cluster, arguments: str, *, trusted: bool, source: str = UNCHANGED, roles: dict[str, int] = ROLES
) -> tuple[Path, Path]:
    """Write the configuration and the directory of a script."""
    folder = cluster.folder / "code"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(source)
    distributed: dict[str, Any] = {"strategy": "tf_config", "roles": roles, "trusted_network": trusted}
    config = {"entrypoint": f"train.py --steps {STEPS} --every 10 {arguments}", "distributed": distributed}
    path = cluster.folder / "const.yaml"
    path.write_text(json.dumps(config))
    return path, folder


def process_of(cluster: Cluster, rank: int) -> psutil.Process:
    [found] = [one for one in cluster.processes() if f"rank-{rank}/work" in one.cwd()]
    return found


def gang(cluster: Cluster) -> list[psutil.Process]:
    return [one for one in cluster.processes() if "/runs/" in one.cwd()]


def assert_trained(experiment: Experiment) -> None:
    """Check that all steps were trained, and the last was evaluated where a role does that.

    Who trains beside others, trains one step more than asked for where all of them have begun their last one.
    """
    [trial] = experiment.trials
    roles = experiment.detail().config["distributed"]["roles"]
    last = trial.detail().batches
    assert STEPS <= last < STEPS + sum(roles.get(role, 0) for role in ("master", "chief", "worker"))
    if {"master", "evaluator"} & roles.keys():
        assert STEPS <= trial.metrics("validation")[-1]["batch"] <= last
    steps = [row["batch"] for row in trial.metrics("training")]
    assert steps == sorted(set(steps))
    assert STEPS <= steps[-1] <= last


def test_all_roles_train_to_the_end(cluster: Cluster, tmp_path: Path) -> None:
    predicts = UNCHANGED + "print('predicted', len(next(estimator.predict(lambda: data(5)))['logits']))\n"
    experiment = submitted(cluster, "--model_dir model", trusted=False, source=predicts)
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.restarts == 0
    assert_trained(experiment)
    assert experiment.detail().config["resources"]["slots_per_trial"] == 2
    lines = str(experiment.logs())
    for role in ("chief", "worker 0", "ps 0", "evaluator"):
        assert f"[{role}] " in lines
    assert "[chief] predicted 3" in lines  # by the variables that lie with the ps
    assert "[ps 0] INFO: The training is over: ps 0 ends." in lines
    folder = Path(experiment.trials[0].checkpoints[-1].download(tmp_path / "checkpoint"))
    assert len(list((folder / "export" / "last").iterdir())) == 1


@pytest.mark.parametrize(("rank", "title"), [(1, "worker 0"), (2, "ps 0")])
def test_a_lost_role_restarts_all_from_the_last_checkpoint(cluster: Cluster, gate: Gate, rank: int, title: str) -> None:
    experiment = submitted(cluster, f"--stop chief25 --port {gate.port}", trusted=True)
    visitor = gate.next()
    checkpoint_at(experiment, 20)
    process_of(cluster, rank).send_signal(signal.SIGKILL)
    gate.next().go()  # of the next attempt: the chief of this one is ended where it stands
    visitor.line.close()
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.restarts == 1
    assert_trained(experiment)
    lines = str(experiment.logs())
    assert f"{title}: killed by signal 9" in lines
    assert "continues from" in lines


def test_a_gang_is_paused_goes_on_and_is_stopped(cluster: Cluster, gate: Gate) -> None:
    endless = f"--steps 10000000 --every 400 --stop chief25 --port {gate.port}"
    experiment = submitted(cluster, endless, trusted=True)
    visitor = gate.next()
    processes = gang(cluster)
    assert len(processes) == 4
    experiment.pause()
    visitor.go()
    events_until(experiment, lambda event: event.type == "trial" and event.data["state"] == "QUEUED")
    psutil.wait_procs(processes, timeout=PATIENCE)
    assert gang(cluster) == []
    [trial] = experiment.trials
    paused_at = trial.checkpoints[-1].batch
    assert paused_at >= 25
    assert paused_at - SLACK <= trial.metrics("training")[-1]["batch"] <= paused_at

    experiment.resume()
    gate.next().go()
    later = events_until(experiment, lambda event: event.type == "checkpoint" and event.data["batch"] > paused_at)
    experiment.stop()
    detail = ended(experiment, ExperimentState.CANCELED)
    assert detail.restarts == 0
    psutil.wait_procs(gang(cluster), timeout=PATIENCE)
    assert gang(cluster) == []
    last = trial.checkpoints[-1].batch
    assert last >= later.data["batch"]
    steps = [row["batch"] for row in trial.metrics("training")]
    assert steps == sorted(set(steps))
    assert last - SLACK <= steps[-1] <= last, "workers go on while the last row is made"
    lines = str(experiment.logs())
    assert f"Paused after batch {paused_at}." in lines
    assert "Attempt 2 continues from" in lines
    assert "exit code" not in lines


def test_a_master_evaluates_itself_beside_several_workers_and_ps(cluster: Cluster) -> None:
    roles = {"master": 1, "worker": 2, "ps": 2}
    experiment = submitted(cluster, "--model_dir model", trusted=False, roles=roles)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_trained(experiment)
    assert experiment.detail().config["resources"]["slots_per_trial"] == 3
    lines = str(experiment.logs())
    for role in ("master", "worker 0", "worker 1", "ps 0", "ps 1"):
        assert f"[{role}] " in lines


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="The numbers of system calls differ.")
def test_without_namespaces_the_network_has_to_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path)
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    det = cluster.folder / "det.py"
    det.write_text(NO_NAMESPACES)
    written(cluster, "", trusted=False, roles={"chief": 1, "ps": 1})
    create = (str(det), "experiment", "create", "const.yaml", "code")
    reason = r"set distributed\.trusted_network: true"
    try:
        with pytest.raises(AssertionError, match=rf"unshare: Operation not permitted.*{reason}"):
            cluster.command(*create)
        with pytest.raises(AssertionError, match=rf"unshare: Operation not permitted.*{reason}"):
            cluster.command(*create, "--local")
        written(cluster, "", trusted=True, roles={"chief": 1, "ps": 1})
        experiment = cluster.attach(json.loads(cluster.command(*create, "--json").splitlines()[-1])["id"])
        ended(experiment, ExperimentState.COMPLETED)
        assert_trained(experiment)
    finally:
        cluster.take_down()


def test_a_failure_says_in_which_role_it_was(cluster: Cluster) -> None:
    fails = UNCHANGED.replace(
        "def receiver():\n",
        "if '\"worker\"' in os.environ['TF_CONFIG'].partition('\"task\"')[2]:\n"
        "    raise ValueError('no more')\n\n\n"
        "def receiver():\n",
    )
    trial = ended(submitted(cluster, "", trusted=False, source=fails), ExperimentState.ERROR)
    assert trial.error is not None
    assert (trial.error.type, trial.error.role) == ("ValueError", "worker 0")
    assert trial.error.file == "train.py"
