"""Second step: the counter goes on from its checkpoint, and stops when it is asked to."""

import json
import pathlib

import determined as det

STEPS = 20


def main(context: det.core.Context, latest: str | None) -> None:
    total, begin = 0.0, 0
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            state = json.loads(pathlib.Path(path, "state.json").read_text())
            total, begin = state["total"], state["step"]
    for step in range(begin + 1, STEPS + 1):
        total += 1.5
        if step % 5 and step != STEPS:
            continue
        context.train.report_training_metrics(step, {"total": total})
        context.train.report_validation_metrics(step, {"remainder": total % 4})
        with context.checkpoint.store_path({"steps_completed": step, "total": total}) as (path, _):
            (path / "state.json").write_text(json.dumps({"total": total, "step": step}))
        if context.preempt.should_preempt():
            return


if __name__ == "__main__":
    info = det.get_cluster_info()
    with det.core.init() as core_context:
        main(core_context, info.latest_checkpoint if info is not None else None)
