"""``tune_peer.py ADDRESS TRIALS``: Ray Tune's random search of trials of two seconds; prints the seconds of its fit."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import tune


def trial(config: dict[str, Any]) -> None:
    """Train as the trials of ours do."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["rate"])
    loss = torch.tensor(0.0)
    for _ in range(10):
        time.sleep(0.2)
        loss = nn.functional.cross_entropy(model(torch.zeros(32, 64)), torch.zeros(32, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tune.report({"val_loss": loss.item()})


def main() -> None:
    """Connect, and time the search alone."""
    ray.init(address=sys.argv[1], log_to_driver=False)
    with TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            tune.with_resources(trial, {"cpu": 1}),
            param_space={"rate": tune.uniform(0.001, 0.1)},
            tune_config=tune.TuneConfig(num_samples=int(sys.argv[2]), metric="val_loss", mode="min"),
            run_config=tune.RunConfig(storage_path=str(Path(folder)), verbose=0),
        )
        begin = time.perf_counter()
        results = tuner.fit()
        seconds = time.perf_counter() - begin
    assert len(results) == int(sys.argv[2])
    assert not results.errors
    print(seconds)


if __name__ == "__main__":
    main()
