"""Callbacks for the trainers of other libraries, with these libraries themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import det_native as det
from det_native.core.cluster_info import ClusterInfo, TrialInfo, set_info
from det_native.errors import ArgumentError
from tests.core.trainers.reported import reported, stored


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Path:
    """Return where checkpoints go; what is reported is in the log."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # Lightning sets it as it is imported
    caplog.set_level("INFO", logger="det_native.core")
    return tmp_path / "store"


@contextmanager
def continuing(checkpoint: Path | None, **searcher: Any) -> Iterator[None]:
    """Have the process belong to a trial that continues from a checkpoint, for a block."""
    name = None if checkpoint is None else checkpoint.name
    trial = TrialInfo(trial_id=1, experiment_id=1, trial_seed=0, hparams={}, config={"searcher": searcher})
    before = set_info(lambda: ClusterInfo(latest_checkpoint=name, trial_info=trial))
    try:
        yield
    finally:
        set_info(before)


def test_transformers(store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A Trainer reports, keeps checkpoints, and continues with the same weights as one that was not ended."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")

    class Tokens(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 16

        def __getitem__(self, place: int) -> dict[str, Any]:
            ids = torch.randint(0, 20, (4,), generator=torch.Generator().manual_seed(place))
            return {"input_ids": ids, "labels": int(ids.sum() % 2)}

    def trained(folder: str, epochs: int) -> Any:
        shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        transformers.set_seed(1)
        model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=20, **shape))
        args = transformers.TrainingArguments(
            str(tmp_path / folder),
            num_train_epochs=epochs,
            per_device_train_batch_size=4,
            learning_rate=0.01,
            lr_scheduler_type="constant",
            eval_strategy="epoch",
            save_strategy="epoch",
            logging_steps=2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        with det.core.init(checkpoint_storage=str(store)) as context:
            callback = det.transformers.DetCallback(context, args, user_data={"of": "mine"})
            trainer = transformers.Trainer(
                model, args, train_dataset=Tokens(), eval_dataset=Tokens(), callbacks=[callback]
            )
            trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
        return model.classifier.weight.detach()

    whole = trained("whole", 2)
    assert sorted(reported(caplog, "training")) == [2, 4, 6, 8]
    validated = reported(caplog, "validation")
    assert sorted(validated) == [4, 8]
    assert all("eval_loss" in row for row in validated.values())
    first, last = stored(store)
    assert list(first.rglob("checkpoint-4/my_data.json"))
    assert not list(last.rglob("checkpoint-4/*"))
    with continuing(first):
        assert torch.equal(trained("continued", 2), whole)
    with continuing(None, max_length={"batches": 100}), pytest.raises(ArgumentError, match="max_steps=100"):
        trained("refused", 2)


def test_lightning(store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A Trainer of Lightning reports what its module logs, and continues with the same weights."""
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning")

    class Plane(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, place: int) -> Any:
            loss = (self.layer(batch[0]) - batch[1]).square().mean()
            self.log("loss", loss)
            return loss

        def validation_step(self, batch: Any, place: int) -> None:
            self.log("val_loss", (self.layer(batch[0]) - batch[1]).square().mean())
            self.log("loss", 7.0)  # the name of a metric of the training, too

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 0.1)

    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 8)

    def trained(epochs: int) -> Any:
        torch.manual_seed(1)
        module = Plane()
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        with det.core.init(checkpoint_storage=str(store)) as context:
            callback = det.lightning.DetCallback(context)
            trainer = lightning.Trainer(
                max_epochs=epochs,
                log_every_n_steps=2,
                accelerator="cpu",
                callbacks=[callback],
                default_root_dir=tmp_path,
                enable_model_summary=False,
                **quiet,
            )
            trainer.fit(module, loader, loader, ckpt_path=callback.ckpt_path)
        return module.layer.weight.detach()

    whole = trained(3)
    training, validation = reported(caplog, "training"), reported(caplog, "validation")
    assert sorted(training) == [2, 4, 6, 8, 10, 12]
    assert all(set(row) == {"loss"} and row["loss"] != 7.0 for row in training.values())
    assert {step: set(row) for step, row in validation.items()} == {step: {"loss", "val_loss"} for step in (4, 8, 12)}
    assert len(stored(store)) == 3
    with continuing(stored(store)[0]):
        assert torch.equal(trained(3), whole)
