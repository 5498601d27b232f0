"""Third step: trials with other increments, of which those that come less close to a number end early."""

import json
import pathlib

import determined as det

TARGET = 50


def main(context: det.core.Context, hparams: dict, latest: str | None) -> None:
    total, step = 0, 0
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            total, step = json.loads(pathlib.Path(path, "state.json").read_text())
    for op in context.searcher.operations():
        while step < op.length:
            total, step = total + hparams["increment"], step + 1
            context.train.report_training_metrics(step, {"total": total})
        distance = abs(TARGET - total)
        context.train.report_validation_metrics(step, {"distance": distance, "batches": step})
        with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "state.json").write_text(json.dumps([total, step]))
        op.report_completed(distance)


if __name__ == "__main__":
    info = det.get_cluster_info()
    with det.core.init() as core_context:
        main(core_context, info.trial.hparams, info.latest_checkpoint)
