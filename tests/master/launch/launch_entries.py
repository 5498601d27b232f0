"""What the workers of these tests run: a small real program that does as its job's hyperparameters say."""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from det_harness.trial import rng

from det_native.schema.job import EXIT_RANK_FAILED, CheckJob, TrialJob

try:
    from upgraded_package import VERSION
except ImportError:
    VERSION = "none"

MARKS: list[str] = []
SLEEPER = "import signal; signal.pause()"


def run(job: TrialJob | CheckJob) -> int:
    """Do what the job says; return the exit code."""
    if isinstance(job, CheckJob):
        (Path(job.directory) / "result.json").write_text("{}")
        return 0
    name = job.hparams["action"]
    if isinstance(name, list):
        assert job.gang is not None
        name = name[job.gang.rank]
    action: Callable[[TrialJob], int | None] = globals()[name.replace(" ", "_")]
    return action(job) or 0


def facts(job: TrialJob) -> None:
    """Write down what this process sees of itself."""
    found = {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "modules": sorted(name for name in sys.modules if name in ("torch", "tensorflow")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "stdin": sys.stdin.read(),
        "frozen": gc.get_freeze_count(),
        "gang": None if job.gang is None else job.gang.model_dump(),
    }
    (Path(job.directory) / "facts.json").write_text(json.dumps(found))
    print(json.dumps(found))


def tiny_pack(job: TrialJob) -> None:
    """Write down what an environment of its own has."""
    import numpy
    import tiny_pack as found

    seen = {"version": found.VERSION, "prefix": sys.prefix, "numpy": numpy.__file__, "base": _base_prefix()}
    (Path(job.directory) / "tiny.json").write_text(json.dumps(seen))
    print(json.dumps(seen))


def _base_prefix() -> str:
    found: str = json.loads((Path(sys.prefix) / "made.json").read_text())["base"]
    return found


def portrait(job: TrialJob) -> None:
    """Write down what a program can see of how its process was made."""
    main = sys.modules["__main__"]
    argv = list(sys.argv)
    if "--status-fd" in argv:
        argv[argv.index("--status-fd") + 1] = "N"
    found = {
        "argv": argv,
        "main": main.__spec__.name if main.__spec__ else None,
        "path": sys.path,
        "flags": str(sys.flags),
        "filters": str(warnings.filters),
        "environment": dict(os.environ),
        "temporary": tempfile.gettempdir(),
        "threads": len(os.listdir("/proc/self/task")),
        "handlers": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "umask": os.umask(0o022),
        "score": Path("/proc/self/oom_score_adj").read_text(),
        "drawn": random.random(),
        "marks": list(MARKS),
    }
    MARKS.append(job.run_id)
    random.seed(0)
    (Path(job.directory) / "facts.json").write_text(json.dumps(found))


def relatives(_: TrialJob) -> None:
    """Compute in processes that this one forks and spawns."""
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(abs, [-1, 2, -3]))


def daemon(_: TrialJob) -> None:
    """Leave a process that was only forked, in a session of its own, whose parent is gone."""
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(tell, str(os.getpid()).encode())
            signal.pause()
        os._exit(0)
    os.wait()
    print("child", os.read(told, 32).decode())
    print("waiting", flush=True)
    signal.pause()


def train(job: TrialJob) -> None:
    """Train a little, and write down the weights."""
    own, shared = os.environ["TMPDIR"], str(Path(os.environ["TMPDIR"]).parent / "det-")
    foreign = {name for name, value in os.environ.items() if shared in value and own not in value}
    assert not foreign, f"{foreign} lead into the temporary folder of another process"
    trained = {"torch": _train_torch, "keras": _train_keras}[job.hparams["framework"]]()
    (Path(job.directory) / "weights").write_bytes(trained)


def _train_torch() -> bytes:
    import torch

    rng.seed_process(5)
    model = torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.Dropout(0.3), torch.nn.Linear(300, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(64, 40)).square().mean().backward()
        optimizer.step()
    return b"".join(one.detach().numpy().tobytes() for one in model.parameters())


def _train_keras() -> bytes:
    import numpy as np
    import tensorflow as tf

    rng.seed_process(5)
    layers = [tf.keras.layers.Dense(30, "relu", input_shape=(40,)), tf.keras.layers.Dropout(0.3)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.normal(size=(256, 40)).astype("float32")
    model.fit(x, x[:, 0], epochs=2, verbose=0)
    named = "".join(layer.name for layer in model.layers)
    return named.encode() + b"".join(one.tobytes() for one in model.get_weights())


def version(_: TrialJob) -> None:
    """Print which version of the package was imported."""
    print(VERSION)


def say(job: TrialJob) -> None:
    """Print a text."""
    print(job.hparams["text"])


def leave(job: TrialJob) -> int:
    """End with an exit code."""
    return int(job.hparams["code"])


def follow(_: TrialJob) -> int:
    """End as one does whose peer has failed."""
    return EXIT_RANK_FAILED


def succeed(_: TrialJob) -> None:
    """Do what there is to do."""


def hold(job: TrialJob) -> int:
    """Stay until a file says with which exit code to go."""
    print("waiting", flush=True)
    path = Path(job.directory) / "go"
    while not path.exists():
        time.sleep(0.02)
    return int(path.read_text())


def place(job: TrialJob) -> None:
    """Print which process of the trial this is."""
    assert job.gang is not None
    print(f"I am {job.gang.rank} of {job.gang.size}")


def die(job: TrialJob) -> None:
    """End by a signal."""
    os.kill(os.getpid(), signal.Signals[job.hparams["signal"]])


def wait(job: TrialJob) -> None:
    """Wait for a signal, with or without children."""
    _family(job.hparams)
    print("waiting", flush=True)
    signal.pause()


def stubborn(_: TrialJob) -> None:
    """Ignore SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("waiting", flush=True)
    while True:
        signal.pause()


def graceful(_: TrialJob) -> None:
    """End by itself on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    print("waiting", flush=True)
    signal.pause()


def modules(job: TrialJob) -> None:
    """Print which of these modules were imported."""
    print(*sorted(name for name in sys.modules if name in job.hparams["names"]))


def last_words(_: TrialJob) -> None:
    """Leave work for the interpreter's end."""
    atexit.register(print, "from atexit")
    threading.Thread(target=lambda: (threading.Event().wait(0.2), print("from a thread"))).start()
    print("no line end", end=" ")
    sys.exit("said at the exit")


def fail(_: TrialJob) -> None:
    """Raise."""
    raise ValueError("what the program raised")


def orphan(job: TrialJob) -> None:
    """End while children run."""
    _family(job.hparams)
    print("leaving", flush=True)


def _family(hparams: dict[str, object]) -> None:
    """Start a child, and a child that leaves the session; print their numbers."""
    if hparams.get("family"):
        for new_session in (False, True):
            child = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=new_session)
            print(f"child {child.pid}", flush=True)
