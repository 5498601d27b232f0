"""Compiles the models of a trial (``optimizations.torch_compile``), in place: they stay the objects that they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from det_native.errors import MissingDependencyError, TrialDefinitionError, UnsupportedFeatureError
from det_native.schema.torch_config import TorchCompile

_FIELD = "optimizations.torch_compile"


class Compilation:
    """Compiles models where the configuration asks for it; where it does not, nothing here does anything."""

    def __init__(self, config: dict[str, Any], owner: str) -> None:
        optimizations = config.get("optimizations") or {}
        self._settings = TorchCompile.model_validate(optimizations.get("torch_compile") or False)
        self._owner = owner
        self._limit: int | None = None

    def apply(self, models: Sequence[torch.nn.Module], device: torch.device) -> None:
        """Compile the models, each at its first call and again for what is new to it.

        Raises
        ------
        MissingDependencyError
            If there is no C++ compiler for inductor's code.
        TrialDefinitionError
            If torch does not take the settings, or a model has mixed precision of level O2.
        UnsupportedFeatureError
            If this version of torch cannot be told to compile all models.
        """
        settings = self._settings
        if not settings.enabled:
            return
        from det_native.pytorch.amp_models import autocasts

        if settings.backend == "inductor" and device.type == "cpu":
            _check_cpp_compiler()
        if any(autocasts(model) for model in models):
            raise TrialDefinitionError(
                f"{_FIELD} cannot compile the models of {self._owner}, whose forwards configure_apex_amp() switches to "
                'half precision one by one: use opt_level="O1" there, or leave the field out.'
            )
        # torch takes one of the two only, and no mode counts as one.
        chosen: dict[str, Any] = {"options": settings.options} if settings.options else {"mode": settings.mode}
        if settings.backend != "inductor":
            chosen = {"options": settings.options} if settings.options else {}
        from torch._dynamo import config

        if not hasattr(config, "wrap_top_frame"):
            raise UnsupportedFeatureError(
                f"{_FIELD} needs a newer PyTorch than {torch.__version__}, which would leave some models as they are "
                "and does not say so: install another (2.13 is what we test with), or leave the field out."
            )
        # Otherwise torch leaves out modules of its own classes: an nn.Sequential would stay as it is.
        with config.patch(wrap_top_frame=True):
            for model in models:
                try:
                    model.compile(
                        backend=settings.backend, dynamic=settings.dynamic, fullgraph=settings.fullgraph, **chosen
                    )
                except RuntimeError as error:
                    raise TrialDefinitionError(f"{_FIELD} is not what torch.compile takes: {error}") from error
                self._explain_calls(model)
        # torch counts the forms that are compiled of all models together, for they are called by the same code.
        self._limit = config.recompile_limit
        config.recompile_limit = self._limit * max(len(models), 1)

    def _explain_calls(self, model: torch.nn.Module) -> None:
        """Say in words, where the model is called, that it cannot be compiled: in a loop of the user's own too."""
        compiled: Any = model._compiled_call_impl

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return compiled(*arguments, **named)
            except Exception as error:
                explained = self._in_words(error)
                if explained is error:
                    raise
                raise explained from error

        call._torchdynamo_inline = compiled._torchdynamo_inline  # type: ignore[attr-defined]  # as part of another model
        model._compiled_call_impl = call

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say what to do if the models cannot be compiled.

        Raises
        ------
        TrialDefinitionError
        """
        try:
            yield
        except Exception as error:
            explained = self._in_words(error)
            if explained is error:
                raise
            raise explained from error
        finally:
            self._restore_limit()

    def _in_words(self, error: Exception) -> Exception:
        """Return what an exception of the compiler means; another one itself."""
        if not self._settings.enabled or not _is_of_compiler(error):
            return error
        reason = str(error).strip().partition("\n\n")[0]
        explained = TrialDefinitionError(
            f"The models of {self._owner} cannot be compiled, which {_FIELD} asks for: {reason}\nWithout that field "
            "they are trained as they are; with its `backend: aot_eager`, PyTorch shows whether their code or the "
            "compiler is at fault; after many sizes of batches, `dynamic: true` compiles for all of them."
        )
        return explained

    def _restore_limit(self) -> None:
        if self._limit is not None:
            from torch._dynamo import config

            config.recompile_limit, self._limit = self._limit, None


def _check_cpp_compiler() -> None:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        raise MissingDependencyError(
            f"{_FIELD} needs a C++ compiler on a CPU, and there is no {compiler!r} here: install one "
            "(apt-get install g++), name one in the environment variable CXX, or leave the field out."
        )


def _is_of_compiler(error: Exception) -> bool:
    from torch._dynamo import exc  # there is no public name for them

    of_compiler = (exc.TorchDynamoException, exc.FailOnRecompileLimitHit)
    # A TorchRuntimeError is an operation of the user's model that fails, as it would without the compiler.
    return isinstance(error, of_compiler) and not isinstance(error, exc.TorchRuntimeError)
