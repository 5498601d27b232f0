"""The sections about where and how trials run: resources, their distribution, optimizations, environment, profiling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from det_native.schema.section import Name, Positive, Secret, Section, Whole
from det_native.schema.torch_config import TorchCompile

Device = Literal["cpu", "cuda", "rocm"]

#: What a master is told of its slots: "4", "cpu:4", "cuda:4".
SLOTS_SETTING = re.compile(r"(?:(cpu|cuda):)?(\d+)")

_SIZE = re.compile(r"(\d*\.)?\d+ ?([kmgtp](i?b)?|b)?", re.IGNORECASE)
# A package with what it is to be; nothing that pip would take for an option or a file.
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[\w\s,.-]*\])?\s*([<>=!~;@][^\n\r\0]*)?", re.ASCII
)
_VARIABLE = re.compile(r"[^=\s\0]+=[^\0]*", re.DOTALL)


class Resources(Section):
    """What an experiment may use. A slot is a GPU, or a share of the CPU; work without one sees no GPU.

    With `allow_cpu` a trial trains on the processors where its slot is a GPU that the framework does not see.
    `accelerator`, `node`, `placement` and `is_single_node` say which slots of several machines it may have.
    """

    slots_per_trial: Whole = 1
    weight: Annotated[float, Field(gt=0)] = 1.0
    max_slots: Positive | None = None
    native_parallel: bool = False
    allow_cpu: bool = False
    shm_size: Any = None
    agent_label: str | None = None
    priority: Annotated[int, Field(ge=1, le=99)] | None = None
    resource_pool: str | None = None
    is_single_node: bool | None = None
    devices: list[str | dict[str, Any]] = Field(default_factory=list)
    slots: Whole | None = None
    accelerator: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    node: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    placement: Literal["pack", "spread"] = "pack"

    @field_validator("shm_size")
    @classmethod
    def _memory_size(cls, size: Any) -> Any:
        bytes_given = isinstance(size, int) and not isinstance(size, bool) and size >= 0
        if size is None or bytes_given or (isinstance(size, str) and _SIZE.fullmatch(size)):
            return size
        raise ValueError(f'must be a number of bytes of at least 0, or text like "128M" or "1.5G", not {size!r}')

    @model_validator(mode="after")
    def _room_for_a_trial(self) -> Self:
        if self.max_slots is not None and self.max_slots < self.slots_per_trial:
            raise ValueError(
                f"max_slots ({self.max_slots}) must be at least slots_per_trial ({self.slots_per_trial}), "
                "or no trial could ever start"
            )
        return self

    @model_validator(mode="after")
    def _one_placement(self) -> Self:
        if self.placement == "spread" and self.slots_per_trial > 1:
            for name in ("is_single_node", "native_parallel"):
                if getattr(self, name):
                    raise ValueError(
                        f"placement: spread asks for several machines, and {name}: true for one: leave out one of them"
                    )
        return self

    @property
    def on_one_machine(self) -> bool:
        """Whether all slots of a trial must be of one machine: those of one process always are."""
        return bool(self.is_single_node) or self.native_parallel


class Optimizations(Section):
    """How gradients are aggregated and exchanged, and models compiled."""

    aggregation_frequency: Positive = 1
    average_aggregated_gradients: bool = True
    average_training_metrics: bool = False
    gradient_compression: bool = False
    grad_updates_size_file: str | None = None
    mixed_precision: Literal["O0", "O1", "O2", "O3", "mixed_float16", "mixed_bfloat16"] = "O0"
    tensor_fusion_threshold: Whole = 64
    tensor_fusion_cycle_time: Whole = 5
    auto_tune_tensor_fusion: bool = False
    torch_compile: TorchCompile = Field(default_factory=TorchCompile)


class Images(Section):
    """Container images by kind of device."""

    cpu: str | None = None
    cuda: str | None = None
    rocm: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_for_all(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"cpu": value, "cuda": value, "rocm": value}
        if not isinstance(value, dict | Images):
            raise ValueError("must be the name of an image, or names for cpu, cuda and rocm")
        return _gpu_is_cuda(value)


class EnvironmentVariables(Section):
    """Environment variables of the trial's processes by kind of device, each ``NAME=VALUE``.

    Written as one list, they hold for all devices.
    """

    cpu: list[str] = Field(default_factory=list)
    cuda: list[str] = Field(default_factory=list)
    rocm: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _one_list_for_all(cls, value: Any) -> Any:
        if isinstance(value, list):
            cls._name_and_value(value)
            return {"cpu": value, "cuda": value, "rocm": value}
        if not isinstance(value, dict | EnvironmentVariables):
            raise ValueError('must be a list of entries of the form "NAME=VALUE"')
        return _gpu_is_cuda(value)

    @field_validator("cpu", "cuda", "rocm")
    @classmethod
    def _name_and_value(cls, variables: list[Any]) -> list[Any]:
        # The values are not repeated in the message: they may be secrets.
        for index, variable in enumerate(variables):
            if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
                raise ValueError(f'entry {index + 1} must be text of the form "NAME=VALUE"')
        return variables

    def with_defaults(self, variables: Mapping[str, str]) -> EnvironmentVariables:
        """Return these with others, which hold where they are not set here."""
        more = [f"{name}={value}" for name, value in variables.items()]
        return EnvironmentVariables(cpu=[*more, *self.cpu], cuda=[*more, *self.cuda], rocm=[*more, *self.rocm])

    def for_device(self, device: Device) -> dict[str, str]:
        """Return the variables of a process on `device`; a later entry wins over an earlier one of the same name."""
        pairs = (variable.partition("=") for variable in getattr(self, device))
        return {name: value for name, _, value in pairs}


class RegistryAuth(Section):
    """Credentials for a registry of container images."""

    username: str | None = None
    password: Secret = None
    auth: Secret = None
    email: str | None = None
    server: str | None = None
    serveraddress: str | None = None
    identitytoken: Secret = None
    registrytoken: Secret = None


class Environment(Section):
    """What a trial's process finds around it."""

    image: Images = Field(default_factory=Images)
    force_pull_image: bool = False
    registry_auth: RegistryAuth | None = None
    environment_variables: EnvironmentVariables = Field(default_factory=EnvironmentVariables)
    pod_spec: dict[str, Any] | None = None
    ports: dict[str, int] = Field(default_factory=dict)
    proxy_ports: list[dict[str, Any]] = Field(default_factory=list)
    add_capabilities: list[str] = Field(default_factory=list)
    drop_capabilities: list[str] = Field(default_factory=list)
    packages: Literal["auto"] | list[str] | None = None

    @field_validator("packages", mode="before")
    @classmethod
    def _requirements(cls, packages: Any) -> Any:
        if packages is None or packages == "auto":
            return packages
        if not isinstance(packages, list):
            raise ValueError(f'must be "auto" or a list such as ["scikit-learn==1.5.0"], not {packages!r}')
        for index, one in enumerate(packages):
            if not isinstance(one, str) or not _REQUIREMENT.fullmatch(one.strip()):
                raise ValueError(f'entry {index + 1}, {one!r}, is no package such as "scikit-learn==1.5.0"')
        return [one.strip() for one in packages]


class Reproducibility(Section):
    """The seed that all others of the experiment come from; None until it is drawn."""

    experiment_seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class Profiling(Section):
    """What is measured of the processes of a trial, and how often.

    `begin_on_batch`, `end_after_batch` and `sync_timings` are of a profiler that times the parts of a batch: there is
    none.
    """

    enabled: bool = True
    period: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    begin_on_batch: Whole | None = None
    end_after_batch: Whole | None = None
    sync_timings: bool = True

    @model_validator(mode="after")
    def _begin_before_end(self) -> Self:
        begin, end = self.begin_on_batch, self.end_after_batch
        if begin is not None and end is not None and begin > end:
            raise ValueError(f"begin_on_batch ({begin}) must not be above end_after_batch ({end})")
        return self


class LogPolicy(Section):
    """What to do when a line of a trial's log matches a pattern."""

    pattern: str
    name: str | None = None
    action: str | dict[str, Any] | None = None
    signal: str | None = None

    @field_validator("pattern")
    @classmethod
    def _regular_expression(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"must be a regular expression: {error}") from None
        return pattern


class RetentionPolicy(Section):
    """For how many days logs are kept; -1 for ever."""

    log_retention_days: Annotated[int, Field(ge=-1, le=32_767)] | None = None


class Slurm(Section):
    """Options of a Slurm cluster."""

    gpu_type: str | None = None
    sbatch_args: list[str] = Field(default_factory=list)
    slots_per_node: Positive | None = None


class Pbs(Section):
    """Options of a PBS cluster."""

    pbsbatch_args: list[str] = Field(default_factory=list)
    slots_per_node: Positive | None = None


def _gpu_is_cuda(value: Any) -> Any:
    # What was called gpu became cuda in Determined 0.17.6.
    # Where both are there, cuda counts.
    if isinstance(value, dict) and "gpu" in value:
        named = {device: given for device, given in value.items() if device != "gpu"}
        return named if named.get("cuda") is not None else {**named, "cuda": value["gpu"]}
    return value


def _interface(name: str) -> str:
    if not re.fullmatch(r"[^\s/,]{1,15}", name):
        raise ValueError(f"must be the name of one network interface, such as eth1, not {name!r}")
    return name


class Distributed(Section):
    """How the slots of a trial share its models."""

    backend: Literal["torch", "horovod"] = "torch"
    strategy: Literal["ddp", "fsdp", "tf_config"] = "ddp"
    fsdp_layers: list[Name] = Field(default_factory=list)
    roles: dict[str, int] = Field(default_factory=dict)
    trusted_network: bool = False
    interface: Annotated[str, AfterValidator(_interface)] | None = None
