"""What a notebook finds in place of det_native where it runs plain: Keras and PyTorch as they are, and nothing more."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace


class _Experiment:
    report, history, state = (), {}, "Completed"

    def wait(self):
        """Everything has been trained by now."""

    def logs(self):
        """Return nothing: all was shown under the cells."""
        return ""


class _Context:
    def __init__(self, config=None, **options):
        self.experiment = _Experiment()
        self._hparams = (config or {}).get("hyperparameters", {})

    def get_hparam(self, name):
        return self._hparams[name]

    def wrap_model(self, model):
        return model


class _KerasContext(_Context):
    def wrap_model(self, model):
        fit = model.fit

        def noted(*data, wait=None, **options):
            history = fit(*data, **options)
            self.experiment.history = history.history
            return history

        model.fit = noted
        return model

    def wrap_dataset(self, dataset):
        return dataset

    def wrap_optimizer(self, optimizer):
        return optimizer


class _TorchContext(_Context):
    def wrap_optimizer(self, optimizer):
        return optimizer

    def wrap_lr_scheduler(self, scheduler, step_mode):
        self._scheduler = scheduler
        return scheduler

    def backward(self, loss):
        loss.backward()

    def step_optimizer(self, optimizer, clip_grads=None):
        if clip_grads:
            clip_grads([parameter for group in optimizer.param_groups for parameter in group["params"]])
        optimizer.step()
        optimizer.zero_grad()

    def report(self, **metrics):
        for name, value in metrics.items():
            self._epoch[name].append(float(value.detach() if hasattr(value, "detach") else value))

    def train(self, loader, epochs=1, validation_loader=None, evaluate_batch=None, wait=None):
        import torch

        history = self.experiment.history = defaultdict(list)
        for self.epoch_idx in range(epochs):
            self._epoch = defaultdict(list)
            yield from loader
            if hasattr(self, "_scheduler"):
                self._scheduler.step()
            for name, values in self._epoch.items():
                history[name].append(sum(values) / len(values))
            if evaluate_batch:
                with torch.no_grad():
                    records = [(evaluate_batch(batch), len(batch[-1])) for batch in validation_loader]
                total = sum(length for _, length in records)
                for name in records[0][0]:
                    mean = sum(float(metrics[name]) * length for metrics, length in records) / total
                    history[name if name.startswith("val_") else f"val_{name}"].append(mean)

    def fit(self, loader, validation_loader=None, *, train_batch, evaluate_batch=None, epochs=1, wait=None):
        length = len(loader)
        for index, batch in enumerate(self.train(loader, epochs, validation_loader, evaluate_batch)):
            self.report(**train_batch(batch, index // length, index))
        return self.experiment


experimental = SimpleNamespace(keras=SimpleNamespace(init=_KerasContext), pytorch=SimpleNamespace(init=_TorchContext))
_STEPS = SimpleNamespace(STEP_EVERY_EPOCH="epoch")
pytorch = SimpleNamespace(LRScheduler=SimpleNamespace(StepMode=_STEPS))
