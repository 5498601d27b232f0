"""Loops over ``context.train()`` as one writes them for torch alone, each for one slot and for two.

What comes of a loop is what its `PlainRun` keeps: the wrapped models, and what was noted. On one slot a batch is
that of both slots, the first slot's records first.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from det_harness.ranks.communicator import Communicator
from loop_run import LoopRun
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.checkpoint import checkpoint

from det_native.pytorch.native import PyTorchNativeContext

SLOTS = 2


class PlainRun(LoopRun):
    """A run whose objects its loop makes.

    Attributes
    ----------
    noted : list of float
        Whatever the loop notes; it has to be the same on all slots.
    """

    def __init__(self, folder: Path, communicator: Communicator | None = None, epochs: int = 2, **given: Any) -> None:
        searcher = {"name": "single", "metric": "loss", "max_length": {"epochs": epochs}}
        super().__init__(folder, communicator, searcher=searcher, **given)

    def _make(self, dropout: float) -> None:
        self.noted: list[float] = []
        self.context = PyTorchNativeContext(
            self.environment, on_fit=lambda call: None, on_train=lambda call: lambda: self._begin(call), role="worker"
        )
        torch.manual_seed(self.environment.trial_seed)

    def wrap(self, *objects: Any) -> Any:
        wrapped = [
            self.context.wrap_model(one) if isinstance(one, nn.Module) else self.context.wrap_optimizer(one)
            for one in objects
        ]
        return wrapped[0] if len(wrapped) == 1 else wrapped

    def data(self) -> Iterator[Any]:
        for batch in self.context.train(self.loader()):
            self.context.report(loss=0.0)
            yield batch

    def losses_of(self, batch: Any, loss: Callable[[Any, int], Any]) -> Any:
        """Return the mean of the slots' losses, which differ by slot: one's own, or on one slot of the two halves."""
        if self.communicator.size > 1:
            return loss(batch, self.communicator.rank)
        halves = zip(*(part.chunk(SLOTS) for part in batch), strict=True)
        return sum(loss(half, slot) for slot, half in enumerate(halves)) / SLOTS

    def result(self) -> dict[str, Any]:
        context = self.context
        return {
            "models": [dict(model.state_dict()) for model in context.models],
            "noted": self.noted,
            "batches": self.services.schedule.progress.batches,
            "hooks": [
                *(len(one._post_accumulate_grad_hooks or ()) for each in context.models for one in each.parameters()),
                *(len(one._optimizer_step_pre_hooks) for one in context.optimizers),
            ],
        }


def network(width: int = 8, inputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, 1))


def plain(run: PlainRun) -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run.wrap(model, optimizer)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for x, y in run.data():
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
        scheduler.step()
        averaged.update_parameters(model)
    run.noted += [scheduler.get_last_lr()[0], float(sum(one.detach().sum() for one in averaged.parameters()))]


def clipped(run: PlainRun) -> None:
    """The norm by which gradients are clipped is that of the means."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad(set_to_none=False)
        mse_loss(model(x), y).backward()
        run.noted.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.05)))
        optimizer.step()


def scaled(run: PlainRun) -> None:
    """In the third batch the second slot's loss overflows (on one slot, that of the batch)."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    for x, y in run.data():
        optimizer.zero_grad()
        last = run.communicator.rank == run.communicator.size - 1
        factor = float("inf") if run.context.batch_idx == 2 and last else 1.0
        scaler.scale(mse_loss(model(x), y) * factor).backward()
        if run.context.batch_idx % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        run.noted.append(scaler.get_scale())


def autocast(run: PlainRun) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(x)
        mse_loss(output.float(), y).backward()
        optimizer.step()


def accumulated(run: PlainRun) -> None:
    """Two batches make a step, each by two passes; gradients are clipped before each step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run.wrap(model, optimizer)
    for x, y in run.data():
        output = model(x)
        (mse_loss(output, y) / 2).backward(retain_graph=True)
        (output.pow(2).mean() / 2).backward()
        if run.context.batch_idx % 2:
            run.noted.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
            optimizer.step()
            optimizer.zero_grad()


def gan(run: PlainRun) -> None:
    """The generator's pass fills the discriminator's gradients, which are discarded."""
    generator, discriminator = network(inputs=2), network(inputs=1)
    of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=0.01)
    run.wrap(generator, discriminator, of_generator, of_discriminator)
    judged = nn.functional.binary_cross_entropy_with_logits
    for x, y in run.data():
        fake = generator(x[:, :2])
        of_discriminator.zero_grad()
        real, made = discriminator(y), discriminator(fake.detach())
        d_loss = judged(real, torch.ones_like(real)) + judged(made, torch.zeros_like(made))
        d_loss.backward()
        of_discriminator.step()
        of_generator.zero_grad()
        made = discriminator(fake)
        judged(made, torch.ones_like(made)).backward()
        of_generator.step()
        run.noted.append(float(nn.utils.clip_grad_norm_(discriminator.parameters(), 1e9)))


def penalised(run: PlainRun) -> None:
    """Gradients of gradients, with a term that ``torch.autograd.grad`` gives."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        x.requires_grad_(True)
        output = model(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        (mse_loss(output, y) + (slope.norm(dim=1) - 1).pow(2).mean()).backward()
        optimizer.step()


def assigned(run: PlainRun) -> None:
    """Gradients that no pass has added to; every other batch by backward."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        if run.context.batch_idx % 2:
            loss.backward()
        else:
            parameters = list(model.parameters())
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.grad = gradient
        optimizer.step()


def searched(run: PlainRun) -> None:
    """LBFGS with a line search, which goes by the loss."""
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=4, line_search_fn="strong_wolfe")
    run.wrap(model, optimizer)
    for batch in run.data():

        def closure(batch: Any = batch) -> Any:
            optimizer.zero_grad()
            loss = mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss

        loss: Any = optimizer.step(closure)  # type: ignore[arg-type]
        run.noted.append(float(loss.detach()))


def closed(run: PlainRun) -> None:
    """A closure of an optimizer that needs none, which returns a number; by the context's backward."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for batch in run.data():

        def closure(batch: Any = batch) -> float:
            optimizer.zero_grad()
            loss = mse_loss(model(batch[0]), batch[1])
            run.context.backward(loss)
            return loss.item()

        run.noted.append(float(optimizer.step(closure=closure)))


def mixed(run: PlainRun) -> None:
    """The context's calls and torch's own, in turn."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run.wrap(model, optimizer)
    for x, y in run.data():
        loss = mse_loss(model(x), y)
        way = run.context.batch_idx % 4
        if way in (0, 1):
            run.context.backward(loss)
        else:
            loss.backward()
        if way in (0, 2):
            optimizer.step()
            optimizer.zero_grad()
        else:
            run.context.step_optimizer(optimizer)


def unused(run: PlainRun) -> None:
    """The second slot alone uses a layer, in some batches; a further one nobody uses. Weights decay."""
    model, some, never = network(), nn.Linear(1, 1), nn.Linear(1, 1)
    layers = nn.ModuleList([model, some, never])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, weight_decay=0.1)
    run.wrap(layers, optimizer)

    def loss(part: Any, slot: int) -> Any:
        output = model(part[0])
        return mse_loss(some(output) if slot == 1 and run.context.batch_idx % 2 else output, part[1])

    for batch in run.data():
        run.losses_of(batch, loss).backward()
        optimizer.step()
        if run.context.batch_idx % 3 == 2:
            optimizer.zero_grad()


def thawing(run: PlainRun) -> None:
    """A frozen layer is thawed; a layer is added to the optimizer, in mid-training."""
    model, late = network(), nn.Linear(1, 1)
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, late, optimizer)
    for x, y in run.data():
        batch = run.context.batch_idx
        model[0].requires_grad_(batch >= 2)
        if batch == 3:
            optimizer.add_param_group({"params": list(late.parameters()), "lr": 0.02})
        optimizer.zero_grad()
        mse_loss(late(model(x)) if batch >= 3 else model(x), y).backward()
        run.noted.append(float(nn.utils.clip_grad_norm_([*model.parameters(), *late.parameters()], 1.0)))
        optimizer.step()


def shared(run: PlainRun) -> None:
    """Two optimizers have a layer in common; a part of the model has no optimizer, and counts in the norm."""
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    first = torch.optim.SGD([*model[0].parameters(), *model[2].parameters()], lr=0.1)
    second = torch.optim.SGD(model[2].parameters(), lr=0.02)
    run.wrap(model, first, second)
    for x, y in run.data():
        model.zero_grad()
        mse_loss(model(x), y).backward()
        run.noted.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        first.step()
        second.step()


def reentrant(run: PlainRun) -> None:
    """Passes within the pass."""
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        hidden: Any = checkpoint(model[1], model[0](x).tanh(), use_reentrant=True)
        mse_loss(model[2](model[1](hidden)), y).backward()
        run.noted.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()


def failing(run: PlainRun) -> None:
    """A pass that fails in its midst, on every slot, and is made again."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)

    def fail(gradient: Any) -> None:
        raise MemoryError

    for x, y in run.data():
        hidden = model[0](x)
        handle = hidden.register_hook(fail)
        try:
            mse_loss(model[2](hidden.tanh()), y).backward()
        except MemoryError:
            optimizer.zero_grad()
        handle.remove()
        mse_loss(model(x), y).backward()
        run.noted.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()
        optimizer.zero_grad()


def copied(run: PlainRun) -> None:
    """Copies of a model, which train by themselves: nothing of ours is on them."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        if run.context.batch_idx == 1 and run.communicator.rank == 0:
            for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                mse_loss(other(x), y).backward()
                assert all(not one._post_accumulate_grad_hooks for one in other.parameters())
            assert not copy.deepcopy(optimizer)._optimizer_step_pre_hooks
        mse_loss(model(x), y).backward()
        optimizer.step()


LOOPS: dict[str, Callable[[PlainRun], None]] = {
    one.__name__: one
    for one in (
        plain,
        clipped,
        scaled,
        autocast,
        accumulated,
        gan,
        penalised,
        assigned,
        searched,
        closed,
        mixed,
        unused,
        thawing,
        shared,
        reentrant,
        failing,
        copied,
    )
}


# Loops that are not those of one slot.


def normalised(run: PlainRun) -> None:
    """What batch norm has gathered is the same on all slots after each pass; a graph stands two passes."""
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.wrap(model, optimizer)
    for x, y in run.data():
        optimizer.zero_grad()
        output = model(x)
        mse_loss(output, y).backward(retain_graph=True)
        output.pow(2).mean().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            run.noted.append(float(model(torch.ones(1, 3))))
        model.train()


def pokes(run: PlainRun) -> None:
    """Write a slot's own numbers into gradients that are averaged."""
    model, optimizer = _parting(run)
    for x, y in run.data():
        mse_loss(model(x), y).backward()
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(1 + run.communicator.rank)
        optimizer.step()
        optimizer.zero_grad()


APART: dict[str, Callable[[PlainRun], None]] = {one.__name__: one for one in (normalised, pokes)}


# Loops that go another way on some slot.


def _parting(run: PlainRun) -> tuple[Any, Any]:
    model = network()
    return run.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))  # type: ignore[no-any-return]


def steps_apart(run: PlainRun, batch: int) -> None:
    """One slot leaves out the step of a batch."""
    model, optimizer = _parting(run)
    for x, y in run.data():
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        if run.context.batch_idx != batch or run.communicator.rank == 0:
            optimizer.step()


def passes_apart(run: PlainRun, batch: int) -> None:
    """One slot makes a second pass in a batch."""
    model, optimizer = _parting(run)
    for x, y in run.data():
        for _ in range(1 + (run.context.batch_idx == batch and run.communicator.rank == 0)):
            mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def closes_apart(run: PlainRun, batch: int) -> None:
    """One slot evaluates its closure once more."""
    model, optimizer = _parting(run)
    for x, y in run.data():

        def closure(x: Any = x, y: Any = y) -> Any:
            loss = mse_loss(model(x), y)
            for _ in itertools.repeat(None, 2 if run.context.batch_idx == batch and run.communicator.rank else 1):
                loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
            return loss

        optimizer.zero_grad()
        optimizer.step(closure)


PARTING: dict[str, Callable[[PlainRun, int], None]] = {
    one.__name__: one for one in (steps_apart, passes_apart, closes_apart)
}


def trained(folder: Path, name: str, communicator: Any = None) -> dict[str, Any]:
    """Run a loop on the slots that `communicator` connects, or on one with the batches of two."""
    alone = {} if communicator is not None else {"batch_size": SLOTS * 4}
    run = PlainRun(folder, communicator, **alone)
    (LOOPS | APART)[name](run)
    return run.result()
