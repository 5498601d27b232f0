"""Fifth step: what the process uses of its machine is measured while it counts."""

import determined as det

if __name__ == "__main__":
    with det.core.init(tensorboard_mode=det.core.TensorboardMode.AUTO) as context:
        context.profiler.on(sampling_interval=1, samples_per_report=2)
        total = sum(number * number for number in range(200_000))
        context.train.report_validation_metrics(steps_completed=1, metrics={"total": total % 1000})
        context.profiler.off()
