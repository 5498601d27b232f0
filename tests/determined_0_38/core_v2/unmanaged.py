"""A script that runs anywhere, inside of an experiment or not, and reports to a master."""

from determined.experimental import core_v2


def main() -> None:
    core_v2.init(
        defaults=core_v2.DefaultConfig(
            name="counted anywhere",
            labels=["core-v2"],
            hparams={"increment": 2},
            searcher={"name": "single", "metric": "total"},
        ),
        unmanaged=core_v2.UnmanagedConfig(external_experiment_id="counter", external_trial_id="counter-1"),
    )
    total = 0
    for step in range(1, 11):
        total += 2
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"total": total})
    core_v2.train.report_validation_metrics(steps_completed=10, metrics={"total": total})
    core_v2.close()


if __name__ == "__main__":
    main()
