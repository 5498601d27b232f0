"""Models of PyTorch in formats that other programs read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from det_native.errors import ArgumentError, CheckpointError, MissingDependencyError

FORMATS = ("torchscript", "torch.export", "safetensors", "onnx")
_EXAMPLE = (
    "export(..., format={!r}) needs example_inputs=, one batch as the model is called with it: "
    "export(path, {!r}, example_inputs=torch.zeros(1, 784))."
)


def export(loaded: Any, target: Path, format: str, options: Mapping[str, Any]) -> Path:
    """Write a loaded model, or the only model of a loaded trial; return the file."""
    modules = modules_of(loaded)
    if format == "safetensors":
        return _safetensors(modules, target)
    if len(modules) > 1:
        raise ArgumentError(
            f"The checkpoint has {len(modules)} models, and format={format!r} takes one; format='safetensors' has all."
        )
    model = modules[0].to("cpu").eval()
    example = options.get("example_inputs")
    inputs = None if example is None else tuple(_tensor(each) for each in _several(example))
    if inputs is None and format != "torchscript":
        raise ArgumentError(_EXAMPLE.format(format, format))
    with _said(format), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if format == "torchscript":
            scripted = torch.jit.script(model) if inputs is None else torch.jit.trace(model, inputs)  # type: ignore[no-untyped-call]
            torch.jit.save(scripted, str(target))
        elif format == "torch.export":
            # PyTorch takes no other names for it.
            written = target.with_name(f"{target.name}.pt2")
            torch.export.save(torch.export.export(model, inputs or ()), str(written))
            written.rename(target)
        else:
            _onnx(model, inputs, target)
    return target


def moved(loaded: Any, map_location: Any) -> Any:
    """Return loaded models on the device that ``map_location`` of ``torch.load()`` says."""
    for module in modules_of(loaded):
        first = next(iter([*module.parameters(), *module.buffers()]), None)
        if first is None:
            continue
        device = _device(map_location, first)
        try:
            module.to(device)
        except (RuntimeError, AssertionError) as error:
            text = str(error).splitlines()[0].rstrip(".")
            raise ArgumentError(f"map_location={map_location!r}: the model cannot go there: {text}.") from None
    return loaded


def modules_of(loaded: Any) -> list[torch.nn.Module]:
    """Return the modules of what a checkpoint was loaded as: a module, several, or a trial."""
    if isinstance(loaded, torch.nn.Module):
        return [loaded]
    if isinstance(loaded, list):
        return loaded
    context = getattr(loaded, "context", None) or getattr(loaded, "_context", None)
    models = getattr(context, "models", None)
    if models is None:
        found = [value for value in vars(loaded).values() if isinstance(value, torch.nn.Module)]
        models = list(dict.fromkeys(found))
    if not models:
        raise CheckpointError("The models of the trial cannot be found: keep them as attributes of the trial.")
    return list(models)


def _device(map_location: Any, tensor: torch.Tensor) -> torch.device:
    wanted = map_location
    if isinstance(wanted, Mapping):
        wanted = wanted.get(str(tensor.device), wanted.get("cuda:0", str(tensor.device)))
    elif callable(wanted) and not isinstance(wanted, torch.device):
        wanted = wanted(tensor.untyped_storage(), str(tensor.device))
        wanted = tensor.device if wanted is None else wanted.device
    try:
        return torch.device(wanted)
    except (RuntimeError, TypeError) as error:
        text = str(error).splitlines()[0].rstrip(".")
        raise ArgumentError(f"map_location={map_location!r} is no device: {text}.") from None


def _safetensors(modules: list[torch.nn.Module], target: Path) -> Path:
    try:
        from safetensors.torch import save_file
    except ImportError as error:
        raise _missing("safetensors") from error
    several = len(modules) > 1
    tensors: dict[str, torch.Tensor] = {}
    for number, module in enumerate(modules):
        for name, tensor in module.state_dict().items():
            if isinstance(tensor, torch.Tensor):  # tied weights are written twice: the format has no sharing
                tensors[f"{number}.{name}" if several else name] = tensor.detach().cpu().contiguous().clone()
    save_file(tensors, str(target))
    return target


def _onnx(model: torch.nn.Module, inputs: tuple[Any, ...] | None, target: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise _missing("onnx onnxscript") from error
    except Exception as error:  # beside another version of what it builds on, of TensorFlow's
        raise MissingDependencyError(
            f"The package onnx cannot be imported ({error}): another package here holds back what it needs. "
            "Export to ONNX in an environment without that: pip install onnx onnxscript."
        ) from error
    torch.onnx.export(model, inputs, str(target), dynamo=True, external_data=False, verbose=False)  # type: ignore[arg-type]


def _several(example: Any) -> tuple[Any, ...]:
    return tuple(example) if isinstance(example, tuple | list) else (example,)


def _tensor(value: Any) -> Any:
    import numpy as np

    return torch.as_tensor(value) if isinstance(value, np.ndarray) else value


@contextmanager
def _said(format: str) -> Iterator[None]:
    try:
        yield
    except (ArgumentError, MissingDependencyError):
        raise
    except Exception as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        more = " Give example_inputs= to have it traced." if format == "torchscript" else ""
        raise CheckpointError(f"PyTorch cannot write this model as {format!r}: {text}.{more}") from error


def _missing(packages: str) -> MissingDependencyError:
    others = ", ".join(repr(each) for each in FORMATS if each not in ("safetensors", "onnx"))
    return MissingDependencyError(
        f"This format needs another package: pip install {packages}. Without it there are {others}."
    )
