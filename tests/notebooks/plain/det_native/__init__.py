"""What a notebook finds in place of det_native where it runs plain: Keras and PyTorch as they are, and nothing more."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace


class _Experiment:
    report, history, state = (), {}, "Completed"

    def __init__(self):
        self.media = []

    def wait(self):
        """Everything has been trained by now."""

    def logs(self):
        """Return nothing: all was shown under the cells."""
        return ""


class _Logging:
    """Where a notebook logs: kept is which pictures, tables, texts and histograms, for they are shown elsewhere."""

    def log(self, metrics=None, **values):
        pass

    def _log(self, name, content, *options, **more):
        _newest().media.append(SimpleNamespace(name=name))

    log_image = log_table = log_text = log_histogram = _log


class _Context(_Logging):
    def __init__(self, config=None, **options):
        self.experiment = _Experiment()
        _experiments.append(self.experiment)
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

    def wrap(self, *parts):
        return parts if len(parts) > 1 else parts[0]

    def epochs(self, epochs):
        history = self.experiment.history = defaultdict(list)
        for self.epoch_idx in range(epochs):
            self._epoch = defaultdict(list)
            yield self.epoch_idx
            for name, values in self._epoch.items():
                history[name].append(values[-1])

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


_experiments = []


def _newest():
    return _experiments[-1]


_logging = _Logging()
log, log_image, log_table = _logging.log, _logging.log_image, _logging.log_table
log_text, log_histogram = _logging.log_text, _logging.log_histogram
experimental = SimpleNamespace(
    keras=SimpleNamespace(init=_KerasContext),
    pytorch=SimpleNamespace(init=_TorchContext),
    estimator=SimpleNamespace(init=_Context),
)
_STEPS = SimpleNamespace(STEP_EVERY_EPOCH="epoch")
pytorch = SimpleNamespace(LRScheduler=SimpleNamespace(StepMode=_STEPS))
