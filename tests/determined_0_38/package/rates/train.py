"""A module of a package, with a variable, a file of its folder and the configuration of its experiment."""

import argparse
import json
import os
import pathlib

import determined as det

from rates.reading import rows

parser = argparse.ArgumentParser()
parser.add_argument("--config", type=json.loads, default={})

if __name__ == "__main__":
    steps = parser.parse_args().config["steps"]
    assert not pathlib.Path("notes").exists()
    assert not pathlib.Path("keys.secret").exists()
    info = det.get_cluster_info()
    scale, name = float(os.environ["RATES_SCALE"]), os.environ["RATES_NAME"]
    values = rows(info.user_data["rows"])
    with det.core.init() as context:
        for epoch in range(1, steps + 1):
            loss = scale * sum(values) * info.trial.hparams["rate"] ** epoch
            context.train.report_validation_metrics(epoch, {"loss": loss})
        print(f"named {name!r}")
