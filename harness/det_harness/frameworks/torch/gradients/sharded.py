"""Models whose weights, gradients and optimizer state the ranks share among them (FSDP2, ``fully_shard``).

A model is sharded in place when it is wrapped: it keeps its methods, and its parameters become ``DTensor`` s. torch
gathers the weights of a layer before it is used, and makes gradients the means over the ranks during backward.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch
import torch.distributed as distributed
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from det_harness.frameworks.torch.gradients.replicas import broadcast_models, check_alike
from det_harness.ranks.communicator import Communicator
from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch.gradients import Gradients

# Layers under this are gathered with what is around them: a small message costs as long as a larger one.
_LEAST_ELEMENTS = 1 << 20
# gloo knows no mean: without this, what FSDP makes of gradients on CPUs is not their mean, or an error.
_SUMS = "set_force_sum_reduction_for_comms"
_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


class ShardedGradients(Gradients):
    """Shards the models of a trial; their gradients need no exchange of ours.

    Parameters
    ----------
    layers : sequence of str
        Names of classes whose instances are gathered one at a time; none for a choice by size.
    compress : bool
        Exchange gradients as float16.
    """

    sharded: bool = True

    def __init__(self, communicator: Communicator, owner: str, layers: list[str], *, compress: bool = False) -> None:
        self._communicator = communicator
        self._owner = owner
        self._layers = layers
        self._seen: set[str] = set()
        self._replaced: weakref.WeakValueDictionary[int, nn.Parameter] = weakref.WeakValueDictionary()  # by id
        self._policy = MixedPrecisionPolicy(reduce_dtype=torch.float16 if compress else None)

    @functools.cached_property
    def _mesh(self) -> Any:
        if not torch.cuda.is_available():
            if not hasattr(FSDPModule, _SUMS):
                raise UnsupportedFeatureError(
                    f"distributed.strategy: fsdp needs a newer PyTorch than {torch.__version__} where slots are CPUs: "
                    "install a newer one, or train with distributed.strategy: ddp."
                )
            return init_device_mesh("cpu", (self._communicator.size,))
        mesh = init_device_mesh("cuda", (self._communicator.size,))
        if "nccl" not in distributed.get_backend_config(mesh.get_group()):
            raise UnsupportedFeatureError(
                "distributed.strategy: fsdp shares a model among GPUs, and slots of this trial share one GPU: train "
                "on fewer slots, or with distributed.strategy: ddp."
            )
        return mesh

    def prepare(self, model: nn.Module) -> None:
        """Shard a model, with the weights of the first rank; a collective call.

        Raises
        ------
        TrialDefinitionError
            If it differs between ranks, or cannot be sharded.
        """
        check_alike(f"{self._owner}.__init__()", [model], [], self._communicator)
        names = {type(one).__name__ for one in model.modules()}
        self._seen |= names
        for name, parameter in model.named_parameters():
            if parameter.ndim == 0:
                raise TrialDefinitionError(
                    f"The parameter {name} of the {type(model).__name__} that {self._owner}.__init__() wraps is a "
                    "scalar, and distributed.strategy: fsdp cannot shard one: make it a tensor of one element."
                )
        layers = layers_of(model, self._layers)
        self._check_ties(model, layers)
        broadcast_models([model], self._communicator)
        self._replaced.update({id(parameter): parameter for parameter in model.parameters()})
        for layer in (*layers, model):
            self._shard(layer)

    def _check_ties(self, model: nn.Module, layers: list[nn.Module]) -> None:
        """Refuse to shard one of two modules with a parameter in common: each would go on with its own."""
        parameters = [
            (f"{path}.{name}".lstrip("."), module, one)
            for path, module in model.named_modules()
            for name, one in module.named_parameters(recurse=False)
        ]
        for path, _, parameter in parameters:
            if id(parameter) in self._replaced:
                raise TrialDefinitionError(
                    f"The {type(model).__name__} that {self._owner}.__init__() wraps has its parameter {path} from a "
                    "model that was wrapped before, and distributed.strategy: fsdp has replaced it there: wrap one "
                    "module that has both models in it, or use distributed.strategy: ddp."
                )
        for layer in layers:
            inside = set(layer.modules())
            within = {id(one): path for path, module, one in parameters if module in inside}
            for path, module, one in parameters:
                if module not in inside and id(one) in within:
                    raise TrialDefinitionError(
                        f"The parameters {within[id(one)]} and {path} of the {type(model).__name__} that "
                        f"{self._owner}.__init__() wraps are one and the same, and distributed.fsdp_layers names "
                        f"{type(layer).__name__}, which would get one of its own: leave that name out."
                    )

    def _shard(self, module: nn.Module) -> None:
        if isinstance(module, FSDPModule):
            return  # a part of it was wrapped before
        # The outermost too: what stayed whole after a forward without backward would be old after the next step.
        fully_shard(module, mesh=self._mesh, reshard_after_forward=True, mp_policy=self._policy)
        if self._mesh.device_type == "cpu":
            getattr(module, _SUMS)(True)

    def watch(self, optimizer: torch.optim.Optimizer, backward_passes: int) -> None:
        """Refuse an optimizer over parameters that the model no longer has."""
        if any(not hasattr(one, "full_tensor") for group in optimizer.param_groups for one in group["params"]):
            raise ArgumentError(
                f"wrap_optimizer() was given a {type(optimizer).__name__} over parameters that are not sharded: with "
                "distributed.strategy: fsdp, wrap_model() replaces a model's parameters, so make the optimizer after "
                "it, over the parameters of the model that it returned."
            )

    def start(self) -> None:
        """Refuse names of layers that no model has."""
        unknown = [name for name in self._layers if name not in self._seen]
        if unknown:
            raise TrialDefinitionError(
                f"distributed.fsdp_layers names {', '.join(unknown)}, but the models of {self._owner} have no module "
                f"of such a class. They have: {', '.join(sorted(self._seen))}."
            )

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return at once: backward has ended with the means."""


def layers_of(model: nn.Module, names: list[str]) -> list[nn.Module]:
    """Return the modules inside a model that are gathered one at a time, the inner ones first.

    Parameters
    ----------
    names : list of str
        Names of their classes. Without any, the entries of lists and sequences of modules count that have over a
        million elements, and no parameter in common with the rest of the model.
    """
    modules = [(path, module) for path, module in model.named_modules() if module is not model]
    if names:
        return [module for _, module in reversed(modules) if type(module).__name__ in names]
    return [module for path, module in reversed(modules) if _is_large_layer(model, path, module)]


def _is_large_layer(model: nn.Module, path: str, module: nn.Module) -> bool:
    parent = model.get_submodule(path.rpartition(".")[0])
    if not isinstance(parent, nn.ModuleList | nn.ModuleDict | nn.Sequential) or isinstance(module, _CONTAINERS):
        return False
    if sum(parameter.numel() for parameter in module.parameters()) < _LEAST_ELEMENTS:
        return False
    own = {id(parameter) for parameter in module.parameters()}
    every = model.named_parameters(remove_duplicate=False)
    return not any(id(parameter) in own for name, parameter in every if not name.startswith(f"{path}."))
