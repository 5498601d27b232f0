"""A script that knows of the search only its own hyperparameters."""

import argparse

import determined as det

parser = argparse.ArgumentParser()
parser.add_argument("--verbose", action="store_true")


def main(context: det.core.Context, rate: float, power: int, steps: int) -> None:
    value = 2.0
    for step in range(1, steps + 1):
        value -= rate * power * value ** (2 * power - 1)
        context.train.report_training_metrics(step, {"value": value})
        context.train.report_validation_metrics(step, {"loss": value**2, "epochs": step})
        if context.preempt.should_preempt():
            break


if __name__ == "__main__":
    arguments = parser.parse_args()
    hparams = det.get_cluster_info().trial.hparams
    if arguments.verbose:
        print("hyperparameters:", hparams)
    with det.core.init() as core_context:
        main(core_context, **hparams)
