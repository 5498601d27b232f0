"""What the tests of a cluster are made of: a real Ray cluster of three machines, a master on it, and a kernel."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, Visitor, running_kernel
from programs import CONFIG, TORCH_END, TORCH_SETUP, TORCH_TRIAL
from programs import RANKED as RANKED_TRIAL
from ray_cluster import RayCluster, RayNode

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.errors import MasterUnreachableError
from det_native.schema import routes
from det_native.schema.rest import MasterInfo, Trial

T = TypeVar("T")

MACHINES = 3
#: What agents run their jobs with.
ENTRY = "det_harness.worker.job:run_job"
# A worker that holds waits for the signal itself: it does not come from the master.
SIGNALLED = """
def until_told():
    import gc, sys, time
    kind = sys.modules["det_harness.worker.attempt"].TrialRun
    [run] = [each for each in gc.get_objects() if type(each) is kind]
    while not run._stop.is_set():
        time.sleep(0.01)
"""
CELLS = (TORCH_SETUP, GATE_CELL, SIGNALLED, CONFIG, TORCH_TRIAL, RANKED_TRIAL, TORCH_END)

#: A trial on two machines, one slot on each; none of what these tests do is a restart that counts, unless they say so.
CREATE = """
experiment = det.experimental.create(
    Ranked,
    configuration(
        hyperparameters=settings,
        resources={"slots_per_trial": 2, "placement": "spread"},
        max_restarts=%d,
    ),
)
"""


class RayMaster(Cluster):
    """A master on the cluster, in a home of its own."""

    def __init__(self, folder: Path, ray: RayCluster) -> None:
        super().__init__(folder, slots="1")
        self.ray = ray

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the master, and of whoever uses it."""
        settings = {name: value for name, value in self.ray.environment.items() if name.startswith("RAY_")}
        return super().environment | settings | {"DET_LAUNCHER": "ray", "DET_RAY_ADDRESS": self.ray.address}

    @property
    def info(self) -> MasterInfo:
        """What the master says of itself now."""
        return connect(start=False).call(routes.GET_MASTER)

    @property
    def bridge(self) -> psutil.Process | None:
        """The bridge of the master that runs; None while there is none."""
        children = psutil.Process(self.master.pid).children()
        return next((child for child in children if "det_native.master.launch.ray.bridge" in line_of(child)), None)

    def made_whole(self) -> None:
        """Have the cluster be as at the beginning: a head and as many other machines, all with a free slot."""
        for node in list(self.ray.nodes):
            if node.leaves or not node.processes():  # a test that has failed leaves it, or it has ended by itself
                self.ray.kill_node(node)
        if self.ray.head not in self.ray.nodes:
            self.ray.start_head()
        while len(self.ray.nodes) < MACHINES:
            self.ray.add_node(1)
        self.has_slots(MACHINES)

    def has_slots(self, count: int) -> None:
        """Wait until the master has so many slots."""
        until(lambda: len(self.info.slots) == count, lambda: f"{self.info}\n{self.home.log.read_text()[-3000:]}")


@contextmanager
def cluster_of(
    folder: Path, head_slots: int = 1, *, redis: str = "", **environment: str
) -> Iterator[tuple[RayCluster, RayMaster, Kernel]]:
    """Run a cluster for the block, with two machines beside the head, and a master and a kernel on it.

    All of that is started at the same time, once there is a head.
    """
    with ExitStack() as stack:
        ray = RayCluster(head_slots, redis=redis, DET_AGENT_ENTRY=ENTRY, **environment)
        stack.callback(ray.stop)
        master = RayMaster(folder / "ray-master", ray)
        stack.callback(master.take_down)
        with ThreadPoolExecutor() as threads:
            # Ray cannot start two at a time on a machine.
            nodes = threads.submit(lambda: [ray.add_node(1) for _ in range(MACHINES - 1)])
            started = threads.submit(master.start, "torch")
            kernel = stack.enter_context(running_kernel(master, "notebook", *CELLS))
        nodes.result()
        started.result()
        yield ray, master, kernel


def line_of(process: psutil.Process) -> str:
    """Return the command line of a process, empty for one that is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def until(condition: Callable[[], T], told: Callable[[], object] = lambda: "") -> T:
    """Wait until something is true; return it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            value = condition()
        except MasterUnreachableError:
            if time.monotonic() > deadline:
                raise
        else:
            if value:
                return value
            assert time.monotonic() < deadline, told()
        time.sleep(0.05)  # between two looks


def submit(master: RayMaster, kernel: Kernel, max_restarts: int = 0, **settings: object) -> Experiment:
    """Submit a training on two machines."""
    return master.attach(kernel.submit_with(CREATE % max_restarts, **settings))


def visitors(gate: Gate) -> dict[int, Visitor]:
    """Wait until both processes stand at the gate; return them by rank."""
    both = [gate.next(), gate.next()]
    return {int(visitor.text.split()[1]): visitor for visitor in both}


def let_go(both: dict[int, Visitor]) -> None:
    """Let all of them go on that live."""
    for visitor in both.values():
        visitor.go()


def machine_of(ray: RayCluster, visitor: Visitor) -> RayNode:
    """Return the machine on which a process is."""
    [node] = [node for node in ray.nodes if visitor.pid in {process.pid for process in node.processes()}]
    return node


def other_than_head(ray: RayCluster, both: dict[int, Visitor]) -> RayNode:
    """Return a machine of a training that is not that of the head, the second's if none is."""
    machines = [machine_of(ray, both[rank]) for rank in (1, 0)]
    return next(machine for machine in machines if machine is not ray.head)


def only_trial(experiment: Experiment) -> Trial:
    """Return the trial of an experiment."""
    [trial] = experiment.trials
    return trial.detail()


def log_of(experiment: Experiment) -> str:
    """Return everything that its trial has said, and what was said of it."""
    return str(experiment.logs())


def end_of(kernel: Kernel, experiment: Experiment) -> Any:
    """Return what a training has come to, bit for bit."""
    return kernel.end_of(experiment.id)


#: Puts three times as much into the object store of every machine as there is room for, and keeps it there until its
#: input ends: Ray writes to disk what goes in after that, so that it never says that nothing more goes in.
FILLING = """
import sys
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

class Filling:
    def fill(self):
        self.kept = [ray.put(bytes(1 << 22)) for _ in range(60)]
        return len(self.kept)

ray.init(sys.argv[1], log_to_driver=False, configure_logging=False)
makers = []
for node in ray.nodes():
    if node["Alive"]:
        strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        makers.append(ray.remote(Filling).options(num_cpus=0, scheduling_strategy=strategy).remote())
print(*ray.get([maker.fill.remote() for maker in makers]), flush=True)
sys.stdin.read()
"""


@contextmanager
def filled_object_stores(ray: RayCluster) -> Iterator[None]:
    """Have another program of the cluster fill the object store of each machine, in the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", FILLING, ray.address],
        env=ray.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        filled = process.stdout.readline().split()
        assert len(filled) == MACHINES
        yield
    finally:
        process.communicate(timeout=PATIENCE)
