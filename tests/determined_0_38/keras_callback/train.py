"""Plain Keras, with the callback that reports."""

import argparse

import determined as det
import determined.keras
import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)


def main(core_context: det.core.Context, checkpoint: str | None, continue_id: int, hparams: dict, epochs: int) -> None:
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(learning_rate=float(hparams["learning_rate"])), loss="mse")
    x = np.linspace(0, 1, 16, dtype="float32").reshape(16, 1)
    callback = det.keras.DeterminedCallback(core_context, checkpoint=checkpoint, continue_id=continue_id)
    model.fit(
        x,
        3 * x,
        batch_size=hparams["global_batch_size"],
        validation_data=(x, 3 * x),
        epochs=epochs,
        callbacks=[callback],
        verbose=0,
    )


if __name__ == "__main__":
    info = det.get_cluster_info()
    with det.core.init() as context:
        main(context, info.latest_checkpoint, info.trial.trial_id, info.trial.hparams, parser.parse_args().epochs)
