"""Scripts in which trainers of other libraries, and ours, report by the Core API."""

from __future__ import annotations

from command_scripts import GATE

#: `det.pytorch.Trainer` on a plane: waits for the test at the batch that its arguments name, unless it is continued.
TRAINER = (
    GATE
    + """
import sys
import torch
import determined as det
from determined import pytorch

stop, port = (int(word) for word in sys.argv[1:3])
info = det.get_cluster_info()


class Plane(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), context.get_hparam("lr")))
        x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
        self.data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))

    def build_training_data_loader(self):
        return pytorch.DataLoader(self.data, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.data, batch_size=32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == stop and info.latest_checkpoint is None:
            gate(port)
        loss = (self.model(batch[0]) - batch[1]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": (self.model(batch[0]) - batch[1]).square().mean()}


with pytorch.init() as context:
    trainer = pytorch.Trainer(Plane(context), context)
    trainer.fit(
        max_length=pytorch.Epoch(3),
        validation_period=pytorch.Epoch(1),
        checkpoint_period=pytorch.Epoch(1),
        latest_checkpoint=info.latest_checkpoint,
    )
"""
)

#: Keras with the callback; the same.
KERAS = (
    GATE
    + """
import sys
import numpy as np
import tensorflow as tf
import determined as det
import determined.keras

stop, port = (int(word) for word in sys.argv[1:3])
info = det.get_cluster_info()
x = np.random.RandomState(0).randn(32, 4).astype("float32")
tf.keras.utils.set_random_seed(info.trial.trial_seed)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile(tf.keras.optimizers.Adam(info.trial.hparams["lr"]), "mse")


class Gate(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == stop and info.latest_checkpoint is None:
            gate(port)


with det.core.init() as context:
    callback = det.keras.DeterminedCallback(context, info.latest_checkpoint, info.trial.trial_id)
    model.fit(x, x.sum(1), 8, 4, 0, [callback, Gate()], validation_data=(x, x.sum(1)), shuffle=False)
"""
)

#: Lightning; the same.
LIGHTNING = (
    GATE
    + """
import sys
import lightning
import torch
import determined as det
import determined.lightning

stop, port = (int(word) for word in sys.argv[1:3])
info = det.get_cluster_info()


class Plane(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, place):
        if self.global_step == stop and info.latest_checkpoint is None:
            gate(port)
        loss = (self.layer(batch[0]) - batch[1]).square().mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, place):
        self.log("val_loss", (self.layer(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), info.trial.hparams["lr"])


x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 8)
lightning.seed_everything(info.trial.trial_seed)
with det.core.init() as context:
    callback = det.lightning.DetCallback(context)
    quiet = {"enable_progress_bar": False, "logger": False}
    trainer = lightning.Trainer(max_epochs=4, log_every_n_steps=1, accelerator="cpu", callbacks=[callback], **quiet)
    trainer.fit(Plane(), loader, loader, ckpt_path=callback.ckpt_path)
"""
)
