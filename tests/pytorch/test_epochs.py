"""Loops over ``context.epochs()``: plain PyTorch, with everything that belongs to a trial between two epochs."""

from __future__ import annotations

import io
import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from epochs_run import BATCHES, EpochsRun, Parts, equal  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from det_native.errors import ArgumentError, InvalidDataError, TrialDefinitionError  # noqa: E402
from det_native.pytorch.epochs_call import TorchEpochsCall  # noqa: E402
from det_native.pytorch.native import PyTorchNativeContext  # noqa: E402
from det_native.schema.environment import TrialEnvironment  # noqa: E402


def plainly(epochs: int) -> tuple[list[torch.Tensor], list[float], list[float]]:
    torch.manual_seed(3)
    parts = Parts()
    losses, held_out = [], []
    for _ in range(epochs):
        losses.append(parts.train().item())
        held_out.append(parts.evaluate())
    return parts.weights, losses, held_out


def program(run: EpochsRun, seen: list[int] | None = None) -> Parts:
    parts = Parts().wrapped(run.context)
    run.parts = parts  # type: ignore[attr-defined]
    for epoch in run.context.epochs(4):
        loss = parts.train()
        run.context.report(loss=loss, held_out=parts.evaluate())
        if seen is not None:
            seen.append(epoch)
    return parts


def test_the_numbers_are_those_of_the_plain_loop(tmp_path: Path) -> None:
    weights, losses, held_out = plainly(4)
    run = EpochsRun(tmp_path).run(program)
    assert equal(run.parts.weights, weights)  # type: ignore[attr-defined]
    assert run.training("loss") == list(zip(range(BATCHES, 4 * BATCHES + 1, BATCHES), losses, strict=True))
    assert [value for _, value in run.training("held_out")] == held_out
    assert (run.outcome.batches, run.outcome.stopped) == (4 * BATCHES, False)
    assert run.last.batch == 4 * BATCHES


def test_a_stopped_trial_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    first = EpochsRun(tmp_path, stop_after=2).run(program)
    assert (first.outcome.batches, first.outcome.stopped) == (2 * BATCHES, True)
    seen: list[int] = []
    second = EpochsRun(tmp_path, resume=first.last).run(lambda run: program(run, seen=seen))
    assert seen == [2, 3]
    weights, losses, _ = plainly(4)
    assert equal(second.parts.weights, weights)  # type: ignore[attr-defined]
    assert [value for _, value in first.training("loss") + second.training("loss")] == losses


def test_a_trial_goes_on_with_its_epochs_where_the_loader_has_another_length(tmp_path: Path) -> None:
    def growing(run: EpochsRun, records: int) -> None:
        parts = Parts()
        parts.loader = DataLoader(torch.utils.data.Subset(parts.loader.dataset, range(records)), batch_size=8)
        parts.wrapped(run.context)
        for epoch in run.context.epochs(4):
            seen.append((epoch, len(list(parts.loader))))
            run.context.report(loss=epoch)

    seen: list[tuple[int, int]] = []
    first = EpochsRun(tmp_path, stop_after=2).run(lambda run: growing(run, 24))
    second = EpochsRun(tmp_path, resume=first.last).run(lambda run: growing(run, 40))
    assert seen[2:] == [(2, 5), (3, 5)]
    assert [batch for batch, _ in first.training("loss") + second.training("loss")] == [3, 6, 9, 12]


def test_a_loader_with_a_generator_of_its_own_goes_on_in_its_order(tmp_path: Path) -> None:
    def ordered(run: EpochsRun) -> None:
        parts = Parts()
        parts.loader = DataLoader(
            parts.loader.dataset, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(11)
        )
        parts.wrapped(run.context)
        run.parts = parts  # type: ignore[attr-defined]
        for _ in run.context.epochs(4):
            run.context.report(loss=parts.train())

    whole = EpochsRun(tmp_path / "whole").run(ordered)
    first = EpochsRun(tmp_path / "parts", stop_after=2).run(ordered)
    second = EpochsRun(tmp_path / "parts", resume=first.last).run(ordered)
    assert equal(second.parts.weights, whole.parts.weights)  # type: ignore[attr-defined]


def test_names_of_the_loop_and_a_pass_that_outlives_its_epoch_go_on(tmp_path: Path) -> None:
    def endless(run: EpochsRun) -> None:
        net, _, loader = run.context.wrap(
            net := torch.nn.Linear(1, 1),
            torch.optim.SGD(net.parameters(), lr=0.1),
            DataLoader(torch.arange(20.0)[:, None], batch_size=8, shuffle=True),
        )
        batches, seen, best = iter(loader), [], None
        for epoch in run.context.epochs(6):
            for _ in range(2):
                try:
                    batch = next(batches)
                except StopIteration:
                    batches = iter(loader)
                    batch = next(batches)
                seen.append(batch.flatten().tolist())
            best = max(best or 0, epoch)
            run.context.report(loss=best)
            kept[:] = [*seen, best]

    kept: list[Any] = []
    EpochsRun(tmp_path / "whole", epochs=6).run(endless)
    whole = list(kept)
    first = EpochsRun(tmp_path / "parts", epochs=6, stop_after=3).run(endless)
    assert kept == [*whole[:6], 2]
    EpochsRun(tmp_path / "parts", epochs=6, resume=first.last).run(endless)
    assert kept == whole


def test_a_pass_that_outlives_its_epoch_is_kept_with_its_place() -> None:
    context = PyTorchNativeContext(TrialEnvironment(config={}, hparams={}, trial_seed=1))
    loader = context.wrap(DataLoader(torch.arange(20.0), batch_size=2, shuffle=True))
    torch.manual_seed(8)
    batches = iter(loader)
    first = [next(batches) for _ in range(3)]
    torch.rand(5)  # what the loop draws in between changes nothing

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return "loader" if value is loader else None

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return loader

    kept = io.BytesIO()
    Pickler(kept).dump(batches)
    state = torch.get_rng_state()
    restored = Unpickler(io.BytesIO(kept.getvalue())).load()
    torch.manual_seed(99)
    rest = [next(batches) for _ in range(7)]
    torch.set_rng_state(state)
    again = list(restored)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(rest, again, strict=True))
    assert sorted(torch.cat(first + again).tolist()) == list(range(20))


def test_break_ends_the_training_there_and_counts_an_epoch_that_was_used(tmp_path: Path) -> None:
    def patient(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for epoch in run.context.epochs(9):
            run.context.report(loss=parts.train())
            if epoch == 2:
                break

    run = EpochsRun(tmp_path, epochs=9).run(patient)
    assert (run.outcome.batches, run.outcome.stopped) == (3 * BATCHES, False)
    assert run.last.batch == 3 * BATCHES
    assert len(run.training("loss")) == 3


def test_code_that_a_notebook_runs_after_a_loop_that_was_left_is_named(tmp_path: Path) -> None:
    """It has no epochs for its loop, and cannot know how the worker has left it."""

    def returning(run: EpochsRun) -> int:
        parts = Parts().wrapped(run.context)
        for epoch in run.context.epochs(9):
            run.context.report(loss=parts.train())
            if epoch == 1:
                return epoch
        return -1

    def searching(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for epoch in run.context.epochs(9):
            for _ in range(2):
                if epoch == 0:
                    break
            else:
                break
            run.context.report(loss=parts.train())
        else:
            parts.train()

    def plain(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for epoch in run.context.epochs(9):
            run.context.report(loss=parts.train())
            for _ in range(2):
                if epoch == 0:
                    break
            else:
                break

    told = [EpochsRun(tmp_path / f.__name__, epochs=9).run(f).reporter.told for f in (returning, searching, plain)]
    assert "`return` in line" in told[0]
    assert "`else` block runs as well" in told[1]
    assert told[2] is None


def test_break_before_anything_was_done_does_not_count_the_epoch(tmp_path: Path) -> None:
    def early(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        best = 2
        for epoch in run.context.epochs(9):
            if epoch == best:
                break
            run.context.report(loss=parts.train())

    run = EpochsRun(tmp_path, epochs=9).run(early)
    assert run.outcome.batches == 2 * BATCHES


def test_a_full_batch_loop_without_a_report_counts_an_epoch_in_which_it_stepped(tmp_path: Path) -> None:
    def silent(run: EpochsRun) -> None:
        model, optimizer = run.context.wrap(net := torch.nn.Linear(3, 1), torch.optim.SGD(net.parameters(), lr=0.1))
        for epoch in run.context.epochs(9):
            if epoch == 3:
                break
            model(torch.ones(4, 3)).mean().backward()
            optimizer.step()
            if epoch == 2:
                break

    run = EpochsRun(tmp_path, epochs=9).run(silent)
    assert run.outcome.batches == 3  # an epoch counts as one batch where no loader is wrapped
    assert not run.reporter.validation_rows


def test_an_exception_in_the_body_fails_the_trial_and_its_rows_are_kept(tmp_path: Path) -> None:
    def broken(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for epoch in run.context.epochs(4):
            run.context.report(loss=parts.train())
            if epoch == 1:
                raise ZeroDivisionError

    run = EpochsRun(tmp_path)
    with pytest.raises(ZeroDivisionError):
        run.run(broken)
    assert run.outcome is None
    assert len(run.training("loss")) == 2


def test_a_report_for_each_batch_is_a_row_for_each_batch(tmp_path: Path) -> None:
    def detailed(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for _ in run.context.epochs(2):
            for number, _batch in enumerate(parts.loader):
                run.context.report(loss=number)
            run.context.report(accuracy=0.5)

    run = EpochsRun(tmp_path, epochs=2).run(detailed)
    assert run.training("loss") == [(batch + 1, float(batch % BATCHES)) for batch in range(2 * BATCHES)]
    assert run.training("accuracy") == [(BATCHES, 0.5), (2 * BATCHES, 0.5)]


def test_more_reports_than_batches_leave_the_last_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talkative(run: EpochsRun) -> None:
        run.context.wrap(net := torch.nn.Linear(3, 1), torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in run.context.epochs(2):
            for number in range(5):
                run.context.report(loss=number)

    run = EpochsRun(tmp_path, epochs=2)
    under_the_cell: list[str] = []
    monkeypatch.setattr(run.reporter, "warning", under_the_cell.append)
    run.run(talkative)
    assert run.training("loss") == [(1, 4.0), (2, 4.0)]
    assert sum("more often than there are batches" in record.message for record in caplog.records) == 1
    [line] = under_the_cell
    assert "has reported loss more often" in line
    assert "With a loader that context.wrap() has wrapped, each batch can have one" in line


def test_the_last_report_is_what_trials_are_compared_by(tmp_path: Path) -> None:
    run = EpochsRun(tmp_path).run(program)
    row = run.reporter.validation_rows[-1]
    assert (row.batch, row.metrics["loss"]) == (4 * BATCHES, run.training("loss")[-1][1])


@pytest.mark.parametrize("epochs", [4, pytest.param(200, marks=pytest.mark.long)])
def test_the_best_epoch_is_known_however_short_it_was(tmp_path: Path, epochs: int) -> None:
    def uneven(run: EpochsRun) -> None:
        net = torch.nn.Linear(1, 1)
        net, _ = run.context.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
        for epoch in run.context.epochs(epochs):
            run.context.report(loss=[0.5, 0.1, 0.7, 0.9][epoch % 4] + epoch / 1000)

    run = EpochsRun(tmp_path, epochs=epochs, checkpoint_policy="best").run(uneven)
    rows = {row.batch: row.metrics["loss"] for row in run.reporter.validation_rows}
    assert min(rows.items(), key=lambda item: item[1]) == (2, pytest.approx(0.101))
    assert list(rows) == sorted(rows)
    if epochs == 4:  # each is due
        assert list(rows) == [1, 2, 3, 4]
        assert [manifest.batch for _, manifest in run.reporter.checkpoints] == [1, 2, 4]


@pytest.mark.parametrize("value", [torch.ones(3), "low", None, [1.0]])
def test_a_metric_that_is_no_number_is_refused_where_it_is_reported(tmp_path: Path, value: Any) -> None:
    def wrong(run: EpochsRun) -> None:
        Parts().wrapped(run.context)
        for _ in run.context.epochs(2):
            run.context.report(loss=value)

    with pytest.raises(TrialDefinitionError, match=r"context\.report\(loss=\.\.\.\) takes one number"):
        EpochsRun(tmp_path).run(wrong)


@pytest.mark.parametrize("value", [torch.ones(3), "low", None, [[3, 1], [0, 4]]])
def test_what_is_no_number_beside_the_compared_metric_is_left_out_and_said_once(
    tmp_path: Path, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def loop(run: EpochsRun) -> None:
        Parts().wrapped(run.context)
        for epoch in run.context.epochs(3):
            run.context.report(loss=epoch, confusion=value)

    run = EpochsRun(tmp_path, epochs=3).run(loop)
    assert [row.metrics for row in run.reporter.training_rows] == [{"loss": 0.0}, {"loss": 1.0}, {"loss": 2.0}]
    [said] = [record.getMessage() for record in caplog.records if "confusion" in record.getMessage()]
    assert "which is no number: it is left out. det.log_table()" in said


def test_a_parameter_is_reported_as_it_was(tmp_path: Path) -> None:
    def changing(run: EpochsRun) -> None:
        net = torch.nn.Linear(1, 1)
        run.context.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
        for epoch in run.context.epochs(3):
            with torch.no_grad():
                net.bias.fill_(epoch)
            run.context.report(loss=net.bias)

    run = EpochsRun(tmp_path, epochs=3).run(changing)
    assert [value for _, value in run.training("loss")] == [0.0, 1.0, 2.0]


def test_a_loader_of_a_context_of_before_is_wrapped_anew() -> None:
    first, second = context_here(), context_here()
    plain = DataLoader(torch.arange(4.0), batch_size=2)
    loader = second.wrap(first.wrap(plain))
    assert (loader.loader, loader.loading) == (plain, second.loading)


@pytest.mark.parametrize(
    ("reported", "compared", "smaller"),
    [
        ({"d_loss": 1.0, "g_loss": 2.0}, "d_loss", True),
        ({"accuracy": 0.5, "loss": 2.0}, "loss", True),  # what stands there until then is among them
        ({"mse": 0.5, "val_mse": 2.0}, "val_mse", True),
        ({"val_accuracy": 0.5}, "val_accuracy", False),
    ],
)
def test_the_first_metric_compares_trials_where_nobody_says_which(
    tmp_path: Path, reported: dict[str, float], compared: str, smaller: bool
) -> None:
    def reporting(run: EpochsRun) -> None:
        Parts().wrapped(run.context)
        run.context.metric_said = False
        for _ in run.context.epochs(2):
            run.context.report(reported)

    run = EpochsRun(tmp_path, epochs=2).run(reporting)
    assert (run.reporter.metric, run.reporter.smaller_is_better) == (compared, smaller)
    assert not run.reporter.validates


def test_a_metric_that_never_comes_is_warned_of_early_and_refused_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def other(run: EpochsRun) -> None:
        Parts().wrapped(run.context)
        for _ in run.context.epochs(3):
            run.context.report(losses=1.0)

    run = EpochsRun(tmp_path, epochs=3)
    run.context.metric_said = True
    with pytest.raises(TrialDefinitionError, match="Did you mean 'losses'"):
        run.run(other)
    assert sum("reported losses in its first epoch. Did you mean" in record.message for record in caplog.records) == 1
    run.services.checkpoints.wait()
    assert run.last.batch == 3 * BATCHES  # what was trained is kept


def test_a_search_needs_a_report(tmp_path: Path) -> None:
    def silent(run: EpochsRun) -> None:
        Parts().wrapped(run.context)
        for _ in run.context.epochs(1):
            pass

    searcher = {"name": "random", "metric": "loss", "max_trials": 2, "max_length": {"epochs": 1}}
    with pytest.raises(TrialDefinitionError, match="nothing says how good"):
        EpochsRun(tmp_path, searcher=searcher).run(silent)


def test_a_configured_period_has_its_validations_and_checkpoints_at_the_ends_of_epochs(tmp_path: Path) -> None:
    changed = {"min_validation_period": {"batches": BATCHES + 1}, "min_checkpoint_period": {"epochs": 1}}
    run = EpochsRun(tmp_path, **changed).run(program)
    assert [row.batch for row in run.reporter.validation_rows] == [2 * BATCHES, 4 * BATCHES]
    assert [manifest.batch for _, manifest in run.reporter.checkpoints] == [BATCHES * n for n in (1, 2, 3, 4)]


def test_a_quick_check_takes_one_batch_of_a_pass(tmp_path: Path) -> None:
    sizes = []

    def counted(run: EpochsRun) -> None:
        parts = Parts().wrapped(run.context)
        for _ in run.context.epochs(4):
            sizes.append((len(list(parts.loader)), len(list(parts.held_out))))
            run.context.report(loss=1.0)

    run = EpochsRun(tmp_path, quick=True).run(counted)
    assert sizes == [(1, 1)]
    assert run.outcome.batches == 1
    assert run.context.loading.most is None


@pytest.mark.parametrize("bounds", [(4,), (1, 5), ()])
def test_epochs_are_numbered_as_by_range(tmp_path: Path, bounds: tuple[int, ...]) -> None:
    def counting(run: EpochsRun) -> list[int]:
        Parts().wrapped(run.context)
        epochs = run.context.epochs(*bounds)
        seen.extend(epochs)
        return seen

    seen: list[int] = []
    EpochsRun(tmp_path).run(counting)
    assert seen == list(range(*bounds)) if bounds else seen == [0, 1, 2, 3]


FORMS = {
    "zip": lambda loader: (batch for batch, _ in zip(loader, loader, strict=False)),
    "islice": lambda loader: itertools.islice(loader, 3),
    "enumerate": lambda loader: (batch for _, batch in enumerate(loader)),
    "iterator": lambda loader: (batch for batch in iter(loader)),
}


@pytest.mark.parametrize("form", FORMS)
def test_loaders_are_gone_over_as_plain_ones(form: str) -> None:
    context = PyTorchNativeContext(TrialEnvironment(config={}, hparams={}, trial_seed=1))
    plain = DataLoader(torch.arange(20.0), batch_size=4, shuffle=True)
    wrapped = context.wrap(DataLoader(torch.arange(20.0), batch_size=4, shuffle=True))
    torch.manual_seed(8)
    expected = [batch.tolist() for batch in FORMS[form](plain)]
    torch.manual_seed(8)
    assert [batch.tolist() for batch in FORMS[form](wrapped)] == expected
    assert (len(wrapped), wrapped.batch_size, wrapped.dataset.tolist()) == (5, 4, list(range(20)))


def test_a_list_of_batches_is_a_loader(tmp_path: Path) -> None:
    batches = [(torch.ones(2, 3), torch.ones(2, 1))] * 3

    def listed(run: EpochsRun) -> None:
        net = torch.nn.Linear(3, 1)
        _, _, loader = run.context.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1), batches)
        assert (len(loader), loader[0] is batches[0]) == (3, True)
        for _ in run.context.epochs(2):
            run.context.report(loss=len(list(loader)))

    run = EpochsRun(tmp_path, epochs=2).run(listed)
    assert run.training("loss") == [(3, 3.0), (6, 3.0)]


def test_lbfgs_steps_by_its_closure(tmp_path: Path) -> None:
    def whole(context: Any) -> list[torch.Tensor]:
        torch.manual_seed(2)
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.LBFGS(net.parameters())
        x = torch.randn(10, 3)
        epochs: Any = range(3)
        if context is not None:
            net, optimizer = context.wrap(net, optimizer)
            epochs = context.epochs(3)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            return loss

        for _ in epochs:
            loss = optimizer.step(closure)
            if context is not None:
                context.report(loss=loss)
            weights[:] = [value.clone() for value in net.parameters()]
        return weights

    weights: list[torch.Tensor] = []
    expected = list(whole(None))
    run = EpochsRun(tmp_path, epochs=3)
    run.run(lambda run: whole(run.context))
    assert equal(weights, expected)


def test_a_loop_without_a_batch_size_has_a_record_for_each_slot() -> None:
    config = {"resources": {"slots_per_trial": 2}}
    context = PyTorchNativeContext(TrialEnvironment(config=config, hparams={}, trial_seed=1))
    context.wrap(net := torch.nn.Linear(1, 1), torch.optim.SGD(net.parameters(), lr=0.1))
    fills = TorchEpochsCall.of(context, [3], None).configuration_fills()
    assert (fills["hyperparameters.global_batch_size"], fills["records_per_epoch"]) == (2, 2)


# What cannot be wrapped, or makes no sense.


def context_here() -> PyTorchNativeContext:
    return PyTorchNativeContext(TrialEnvironment(config={}, hparams={}, trial_seed=1))


class LikeAnOptimizer:
    def step(self) -> None: ...

    def zero_grad(self) -> None: ...


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([None], "argument 1 is None"),
        ([torch.nn.Linear(1, 1), None], "argument 2 is None"),
        ([], "was given nothing"),
        ([torch.nn.Linear], "the class Linear: make an object of it"),
        ([[torch.nn.Linear(1, 1)]], "give them one by one"),
        ([torch.ones(3)], "need no wrapping"),
        ([torch.utils.data.TensorDataset(torch.ones(3))], "Make a loader of it"),
        ([3], "argument 1 is a int"),
        ([LikeAnOptimizer()], "derive its class from torch.optim.Optimizer"),
    ],
)
def test_what_cannot_be_wrapped_is_said_with_what_to_do(given: list[Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        context_here().wrap(*given)


def test_an_empty_loader_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="without batches"):
        context_here().wrap([])


def test_a_loader_is_wrapped_once() -> None:
    context = context_here()
    loader = context.wrap([1, 2])
    with pytest.raises(InvalidDataError, match="wrapped already"):
        context.wrap(loader)


def test_a_generator_of_batches_is_taken_with_its_limit_said() -> None:
    with pytest.warns(UserWarning, match="gives its batches once"):
        loader = context_here().wrap(batch for batch in [1, 2])
    assert list(loader) == [1, 2]


@pytest.mark.parametrize(
    ("bounds", "says"),
    [((0,), "at least 1"), (("3",), "at least 1"), ((5, 5), "no epoch from 5 to 5"), ((1, 2, 3), "as range")],
)
def test_epochs_that_make_no_sense(bounds: tuple[Any, ...], says: str) -> None:
    context = context_here()
    Parts().wrapped(context)
    with pytest.raises(ArgumentError, match=says):
        context.epochs(*bounds)


def test_a_model_may_be_wrapped_after_its_optimizer_and_must_be_wrapped() -> None:
    context, parts = context_here(), Parts()
    context.wrap(parts.optimizer)
    with pytest.raises(TrialDefinitionError, match="no model is wrapped"):
        context.epochs(2)
    context.wrap(parts.model)
    with pytest.raises(ArgumentError, match="outside any run"):  # nothing stands in its way but the kind of context
        context.epochs(2)


def test_the_model_made_again_after_its_optimizer_is_refused() -> None:
    context, parts = context_here(), Parts()
    context.wrap(Parts().model, parts.optimizer)
    with pytest.raises(TrialDefinitionError, match="belong to no wrapped model"):
        context.epochs(2)


def test_a_configured_batch_size_is_the_first_loaders() -> None:
    context = PyTorchNativeContext(TrialEnvironment(config={}, hparams={"global_batch_size": 5}, trial_seed=1))
    with pytest.warns(UserWarning, match="global_batch_size is 5, the loader's batch size 4"):
        loader = context.wrap(DataLoader(torch.arange(20.0), batch_size=4))
    other = context.wrap(DataLoader(torch.arange(20.0), batch_size=4))
    assert ([len(batch) for batch in loader], len(next(iter(other)))) == ([5] * 4, 4)
