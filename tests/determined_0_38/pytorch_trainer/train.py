"""A Trial that the Trainer fits: in an experiment with its hyperparameters, elsewhere with those of this file."""

import argparse
import logging

import determined as det
import torch
from determined import pytorch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)


class Points(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tensor([index / 16])
        return x, 3 * x


class Line(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext, hparams: dict) -> None:
        self.context, self.hparams = context, hparams
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=hparams["learning_rate"])
        self.optimizer = context.wrap_optimizer(optimizer)

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Points(), batch_size=self.hparams["batch_size"], shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Points(), batch_size=self.hparams["batch_size"])

    def train_batch(self, batch: list, epoch_idx: int, batch_idx: int) -> dict:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: list) -> dict:
        x, y = batch
        return {"validation_loss": torch.nn.functional.mse_loss(self.model(x), y).item()}


def main(epochs: int) -> None:
    info = det.get_cluster_info()
    hparams = {"learning_rate": 0.1, "batch_size": 4} if info is None else info.trial.hparams
    latest = None if info is None else info.latest_checkpoint
    with pytorch.init() as context:
        trainer = pytorch.Trainer(Line(context, hparams), context)
        trainer.fit(
            max_length=pytorch.Epoch(epochs),
            validation_period=pytorch.Batch(4),
            checkpoint_period=pytorch.Epoch(1),
            checkpoint_policy="all",
            latest_checkpoint=latest,
            reporting_period=pytorch.Batch(2),
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    main(parser.parse_args().epochs)
