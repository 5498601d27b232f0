"""The framework of a class in a file, told without an import."""

from __future__ import annotations

from pathlib import Path

import pytest

from det_native.experimental.unimported import framework_in_text


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("from determined.pytorch import PyTorchTrial\nclass T(PyTorchTrial): pass", "torch"),
        ("from determined.keras import TFKerasTrial as Base\nclass T(Base): pass", "keras"),
        ("import determined.estimator\nclass T(determined.estimator.EstimatorTrial): pass", "estimator"),
        ("import det_native as det\nclass T(det.pytorch.PyTorchTrial): pass", "torch"),
        ("from det_native import pytorch as p\nclass B(p.PyTorchTrial): pass\nclass T(object, B): pass", "torch"),
        ("from det_native.keras.trial import TFKerasTrial\nclass T(TFKerasTrial): pass", "keras"),
        ("from parts.base import Base\nclass T(Base): pass", "torch"),
        ("import parts.base as b\nclass T(b.Base): pass", "torch"),
        ("from parts import Base as T", "torch"),
        (
            "if True:\n    from determined.pytorch import PyTorchTrial as P\nclass T(P): pass",
            "torch",
        ),
        ("class T(T): pass", None),
        ("class T: pass", None),
        ("from parts.base import *\nclass T(Base): pass", None),
        ("from torch.nn import Module\nclass T(Module): pass", None),
        ("class T(", None),
        ("class Other: pass", None),
    ],
)
def test_the_base_is_followed_through_the_files_of_the_folder(tmp_path: Path, text: str, framework: str | None) -> None:
    (tmp_path / "model_def.py").write_text(text)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/__init__.py").write_text("from .base import Base")
    (tmp_path / "parts/base.py").write_text(
        "import torch\nfrom .rest import Rest\nclass Base(Rest): pass\nraise RuntimeError('imported')"
    )
    (tmp_path / "parts/rest.py").write_text("from determined import pytorch\nclass Rest(pytorch.PyTorchTrial): pass")
    found = framework_in_text("model_def:T", tmp_path)
    assert (found.name if found is not None else None) == framework
