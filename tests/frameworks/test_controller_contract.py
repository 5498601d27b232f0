"""The contract of controllers, kept by every framework that there is. Another one adds a subject here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from controller_contract import BATCH_SIZE, RECORDS, ControllerContract, InBatch, Subject
from det_harness.frameworks.base import harness_of
from det_harness.trial.services import Outcome, Services
from installed_toy import toy_in_this_process

from det_native.schema.environment import TrialEnvironment

pytestmark = pytest.mark.slow


class Torch(Subject):
    """A PyTorchTrial with dropout."""

    framework = "torch"

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        import torch

        from det_native.pytorch import DataLoader, PyTorchTrial

        records = torch.randn(RECORDS, 6, generator=torch.Generator().manual_seed(3))
        data = torch.utils.data.TensorDataset(records, records[:, :3].argmax(1))

        class Small(PyTorchTrial):
            def __init__(self, context: Any) -> None:
                self.context = context
                layers = (torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))
                self.model = context.wrap_model(torch.nn.Sequential(*layers))
                self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters()))

            def build_training_data_loader(self) -> DataLoader:
                return DataLoader(data, batch_size=BATCH_SIZE, shuffle=True)

            def build_validation_data_loader(self) -> DataLoader:
                return DataLoader(data, batch_size=BATCH_SIZE)

            def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
                in_batch(batch_idx + 1, self.context)
                loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
                self.context.backward(loss)
                self.context.step_optimizer(self.optimizer)
                return {"loss": loss}

            def evaluate_batch(self, batch: Any) -> dict[str, Any]:
                return {"val_loss": torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])}

        return Small

    def state(self, loaded: Any) -> Any:
        return {name: value.tolist() for name, value in loaded.model.state_dict().items()}


class NativeTorch(Torch):
    """A call of ``context.fit()``."""

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        import torch

        from det_native.pytorch.native import PyTorchNativeContext

        records = torch.randn(RECORDS, 6, generator=torch.Generator().manual_seed(3))
        data = torch.utils.data.TensorDataset(records, records[:, :3].argmax(1))
        context = PyTorchNativeContext(
            environment, on_fit=lambda call: call, on_train=lambda call: lambda: iter([call]), length_of=lambda _: 0
        )
        layers = (torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))
        model = context.wrap_model(torch.nn.Sequential(*layers))
        optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters()))

        def train_batch(batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            in_batch(batch_idx + 1, context)
            loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
            context.backward(loss)
            context.step_optimizer(optimizer)
            return {"loss": loss}

        def evaluate_batch(batch: Any) -> dict[str, Any]:
            return {"val_loss": torch.nn.functional.cross_entropy(model(batch[0]), batch[1])}

        loaders = [torch.utils.data.DataLoader(data, BATCH_SIZE, shuffle=shuffle) for shuffle in (True, False)]
        return self.call(context, loaders[0], loaders[1], train_batch, evaluate_batch)

    def call(self, context: Any, loader: Any, validation_loader: Any, train_batch: Any, evaluate_batch: Any) -> Any:
        """Return the call that is trained."""
        return context.fit(loader, validation_loader, train_batch, evaluate_batch, epochs=3)

    def state(self, loaded: Any) -> Any:
        return {name: value.tolist() for name, value in loaded.state_dict().items()}


class TorchLoop(NativeTorch):
    """A loop over ``context.train()``."""

    def call(self, context: Any, loader: Any, validation_loader: Any, train_batch: Any, evaluate_batch: Any) -> Any:
        self.train_batch = train_batch
        return next(context.train(loader, 3, validation_loader=validation_loader, evaluate_batch=evaluate_batch))

    def train(self, payload: Any, services: Services) -> Outcome:
        loop = harness_of("torch").loop(payload, services)
        context = payload.context
        for batch in loop.batches():
            context.report(self.train_batch(batch, context.epoch_idx, context.batch_idx))
        assert loop.outcome is not None
        return loop.outcome


class Keras(Subject):
    """A call of ``fit()`` of a model with dropout."""

    framework = "keras"

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        import numpy as np
        import tensorflow as tf

        from det_native.keras import TFKerasNativeContext

        class Visits(tf.keras.callbacks.Callback):
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                in_batch(int(self.model.optimizer.iterations) + 1, context)

        context = TFKerasNativeContext(environment, on_fit=lambda call: call, role="local")
        tf.keras.backend.clear_session()
        layers = [tf.keras.layers.Dense(8, input_shape=(6,)), tf.keras.layers.Dropout(0.3), tf.keras.layers.Dense(3)]
        model = context.wrap_model(tf.keras.Sequential(layers))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        records = np.random.default_rng(3).normal(size=(RECORDS, 6)).astype("float32")
        labels = records[:, :3].argmax(1)
        return model.fit(
            records,
            labels,
            batch_size=BATCH_SIZE,
            epochs=3,
            verbose=0,
            validation_data=(records, labels),
            validation_freq=1000,  # not after each epoch: what the schedule asks for is looked at
            callbacks=[Visits()],
        )

    def state(self, loaded: Any) -> Any:
        return [value.tolist() for value in loaded.get_weights()]


class KerasTrial(Keras):
    """A TFKerasTrial with dropout."""

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        import numpy as np
        import tensorflow as tf

        from det_native.keras import TFKerasTrial

        records = np.random.default_rng(3).normal(size=(RECORDS, 6)).astype("float32")
        labels = records[:, :3].argmax(1)
        tf.keras.backend.clear_session()

        class Small(TFKerasTrial):
            def build_model(self) -> Any:
                layers = [tf.keras.layers.Dense(8, input_shape=(6,)), tf.keras.layers.Dropout(0.3)]
                model = self.context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
                model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
                return model

            def build_training_data_loader(self) -> Any:
                return records, labels

            def build_validation_data_loader(self) -> Any:
                return records, labels

            def keras_callbacks(self) -> list[Any]:
                context = self.context

                class Visits(tf.keras.callbacks.Callback):
                    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                        in_batch(int(self.model.optimizer.iterations) + 1, context)

                return [Visits()]

        return Small


class Estimator(Subject):
    """An EstimatorTrial with dropout; its graphs are built beside eager code here, so that all share a process."""

    framework = "estimator"

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        import numpy as np
        import tensorflow as tf

        from det_native.estimator import EstimatorTrial

        records = np.random.default_rng(3).normal(size=(RECORDS, 6)).astype("float32")
        labels = records[:, :3].argmax(1)

        class Visits(tf.estimator.SessionRunHook):  # type: ignore[misc]
            def __init__(self, context: Any) -> None:
                self.context = context

            def after_create_session(self, session: Any, coord: Any) -> None:
                self.begun = int(session.run(tf.compat.v1.train.get_global_step()))

            def before_run(self, run_context: Any) -> None:
                self.begun += 1
                in_batch(self.begun, self.context)

        class Small(EstimatorTrial):
            def build_estimator(self) -> Any:
                def model_fn(features: Any, labels: Any, mode: str) -> Any:
                    training = mode == tf.estimator.ModeKeys.TRAIN
                    hidden = tf.keras.layers.Dropout(0.3)(tf.keras.layers.Dense(8)(features["x"]), training=training)
                    logits = tf.keras.layers.Dense(3)(hidden)
                    if mode == tf.estimator.ModeKeys.PREDICT:
                        return tf.estimator.EstimatorSpec(mode, predictions=logits)
                    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
                    optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdamOptimizer())
                    step = optimizer.minimize(loss, tf.compat.v1.train.get_global_step()) if training else None
                    metrics = {"val_loss": tf.compat.v1.metrics.mean(loss)}
                    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)

                return tf.estimator.Estimator(model_fn, model_dir="estimator")

            def data(self) -> Any:
                return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"x": records}, labels)))

            def build_train_spec(self) -> Any:
                data = lambda: self.data().shuffle(RECORDS).batch(BATCH_SIZE)  # noqa: E731
                return tf.estimator.TrainSpec(data, hooks=[Visits(self.context)])

            def build_validation_spec(self) -> Any:
                return tf.estimator.EvalSpec(lambda: self.data().batch(BATCH_SIZE), steps=None)

            def build_serving_input_receiver_fns(self) -> Any:
                def receiver() -> Any:
                    given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 6])}
                    return tf.estimator.export.ServingInputReceiver(given, given)

                return {"raw": receiver}

        return Small

    def state(self, loaded: Any) -> Any:
        return {variable.name: variable.numpy().tolist() for variable in loaded.variables}


class Toy(Subject):
    """A counter."""

    framework = "toy"

    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        base: Any = import_module("toy_framework.trial").ToyTrial

        class Counting(base):  # type: ignore[misc]
            def train_batch(self, batch_idx: int) -> Any:
                in_batch(batch_idx + 1, self.context)
                return super().train_batch(batch_idx)

        return Counting

    def state(self, loaded: Any) -> Any:
        return loaded.count, loaded.steps


@pytest.fixture(scope="module")
def loaded_frameworks() -> None:
    """Load both frameworks before a test is watched: what they leave behind is theirs."""
    for name in ("torch", "keras"):
        harness_of(name).warm_up("cpu")


@pytest.fixture(
    params=[Torch, NativeTorch, TorchLoop, Keras, KerasTrial, Estimator, Toy], ids=lambda kind: kind.__name__
)
def subject(
    loaded_frameworks: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    """Each of the frameworks."""
    made: Subject = request.param()
    if made.framework == "toy":
        with toy_in_this_process(tmp_path_factory.mktemp("toy")):
            yield made
    else:
        yield made


class TestControllers(ControllerContract):
    """All of them."""
