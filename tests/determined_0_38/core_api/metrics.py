"""First step: metrics of training and validation, a group of one's own, and progress."""

import logging

import determined as det

logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
STEPS = 20


def main(context: det.core.Context) -> None:
    total = 0.0
    for step in range(1, STEPS + 1):
        total += 1.5
        if step % 5 == 0:
            context.train.report_training_metrics(steps_completed=step, metrics={"total": total})
            context.train.report_metrics(group="half", steps_completed=step, metrics={"total": total / 2})
            context.train.report_progress(step / STEPS)
    context.train.set_status("validating")
    context.train.report_validation_metrics(steps_completed=STEPS, metrics={"remainder": total % 4})
    logging.info("the total is %s", total)


if __name__ == "__main__":
    with det.core.init() as core_context:
        main(core_context)
