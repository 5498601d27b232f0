"""A call of ``fit`` on a wrapped model: its arguments, its data, and what they say about the experiment."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import tensorflow as tf

from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.heap.call import CallSnapshot
from det_native.keras import pipelines
from det_native.keras.adapter import SequenceAdapter
from det_native.keras.call_context import CallContext
from det_native.keras.data import (
    Data,
    Kind,
    check_shards,
    count_batches,
    dataset_batch_size,
    describe,
    describe_validation,
)
from det_native.keras.fit_arguments import bind, check_numbers
from det_native.keras.generations import internals
from det_native.keras.metric_numbers import name_as_asked
from det_native.keras.metrics import adds_metrics, check_compared
from det_native.keras.sources import DataSource
from det_native.keras.streams import GlobalState, ReplayableStream, global_state
from det_native.keras.values import number_of
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import Length, Unit
from det_native.schema.manifests import Framework
from det_native.schema.proof import Input, Role

logger = logging.getLogger("det_native")

DEFAULT_BATCH_SIZE = 32
# What says how the data are used; lengths and the size of batches are the configuration's.
_COMPARED_ARGUMENTS = ("validation_split", "shuffle", "validation_steps", "validation_batch_size", "validation_freq")
_OF_MODEL: dict[str, Role] = {"optimizer": "optimizer", "loss": "loss"}
QUEUE_ARGUMENTS = ("max_queue_size", "workers", "use_multiprocessing")


@dataclass
class FitCall:
    """One call of ``fit`` (or ``fit_generator``), bound and checked.

    Attributes
    ----------
    context : CallContext
        The ``TFKerasNativeContext`` whose model it is.
    model : tf.keras.Model
        The user's model, compiled.
    arguments : dict
        Every argument of ``Model.fit`` by name, defaults filled in.
    given : frozenset of str
        The names of those that the user wrote.
    extra : dict
        Further keyword arguments, for a model class with a ``fit`` of its own.
    training : Data
        What is trained on; the part before the cut with ``validation_split``.
    validation : Data or None
        What is validated on.
    random_state : GlobalState
        Of Python and numpy when the call was made.
    validation_queue : mapping
        Arguments of Keras's queues (``workers`` and so on) for the validation data; `arguments` has those of the
        training data.
    verbose : int
        What was asked for, as Keras takes it; `arguments` has what Keras is to print.
    wait : bool or None
        Whether the call waits for its end on the cluster; None where it does not say it.
    as_in_keras : bool
        Whether it draws random numbers and orders data as it would without us, from the program's seeds; a trial class
        does from the trial's.
    bar_left_out : bool
        Whether Keras draws no bar although one was asked for: a live view is in its place.
    log_line : callable, optional
        Takes a line of each epoch, for the log of a training that prints none.
    snapshot : CallSnapshot, optional
        All that it can reach, as it was before it trained.
    """

    framework: ClassVar[Framework] = "keras"
    kind: ClassVar[Literal["fit"]] = "fit"

    context: CallContext
    model: Any
    arguments: dict[str, Any]
    given: frozenset[str]
    extra: dict[str, Any]
    training: Data
    validation: Data | None
    random_state: GlobalState = field(default_factory=global_state, repr=False)
    validation_queue: Mapping[str, Any] = field(default_factory=dict)
    wait: bool | None = None
    verbose: int = field(init=False)
    as_in_keras: bool = True
    bar_left_out: bool = False
    log_line: Callable[[str], None] | None = field(default=None, repr=False)
    snapshot: CallSnapshot | None = field(default=None, repr=False)
    _source: DataSource | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        asked = self.arguments["verbose"]
        self.verbose = 1 if asked == "auto" else int(asked)
        self.validation_queue = {name: self.arguments[name] for name in QUEUE_ARGUMENTS} | {**self.validation_queue}

    @classmethod
    def of(
        cls,
        context: CallContext,
        model: Any,
        method: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        reading: Mapping[str, Any] | None = None,
    ) -> FitCall:
        """Bind and check the arguments of a call.

        `reading` says how the training data are read, by names in ``QUEUE_ARGUMENTS``: an adapter has it, or a
        context; the ``fit`` of Keras 3 does not take it.

        Raises
        ------
        SignatureError
            If the arguments do not fit the signature; it is a TypeError.
        TrialDefinitionError
            If the model is not compiled.
        InvalidDataError
            If the data cannot be used.
        ArgumentError
            If numbers among the arguments make no sense.
        """
        if not internals.is_compiled(model):
            raise TrialDefinitionError("The model is not compiled. Call model.compile(...) before fit().")
        arguments, given, extra = bind(model, method, args, kwargs)
        check_numbers(arguments)
        queues = [_unpacked(arguments, name) for name in ("x", "validation_data")]
        read = {**queues[0], **(reading or {})}
        arguments.update(read)
        given |= set(read)
        training, validation = _data_of(arguments)
        call = cls(context, model, arguments, given, extra, training, validation)
        call.validation_queue = {**call.validation_queue, **queues[1]}
        return call

    @property
    def quiet(self) -> bool:
        """Whether nothing is to be shown of the training."""
        return self.arguments["verbose"] in (0, "0", False)

    def inputs(self) -> dict[str, Input]:
        """Return what the call is given, by what it is called in messages: what a worker compares."""
        given: dict[str, Input] = {}
        for name in ("x", "y", "sample_weight", "class_weight", "validation_data"):
            value = self.arguments[name]
            if value is None:
                continue
            if name == "validation_data" and isinstance(value, tuple | list):
                for place, part in enumerate(value[:3]):
                    if part is not None:
                        title = f"{('x', 'y', 'sample_weight')[place]} of validation_data"
                        given[title] = Input(part, assign=partial(self._give_validation, place))
            else:
                given[name] = Input(value, assign=partial(self._give, name))
            if isinstance(value, tf.data.Dataset):
                given[f"functions of {name}"] = Input(pipelines.functions_of(value), "code")
        for name in _COMPARED_ARGUMENTS:
            given[f"the argument {name}"] = Input(self.arguments[name], "loader", assign=partial(self._give, name))
        for callback in self.callbacks():
            given[_title_of(callback, given)] = Input(callback, "callback")
        given["the model"] = Input(self.model, "layers")
        for part, role in _OF_MODEL.items():
            value = getattr(self.model, part, None)
            if value is not None and not isinstance(value, str):  # a text is the model's own
                given[f"the {part}"] = Input(value, role)
        return {part: each for part, each in given.items() if each.value is not None}

    def _give(self, name: str, value: Any) -> None:
        """Take another value for an argument that has data."""
        self.arguments[name] = value

    def _give_validation(self, place: int, value: Any) -> None:
        parts = list(self.arguments["validation_data"])
        parts[place] = value
        self._give("validation_data", tuple(parts))

    def inputs_changed(self) -> None:
        """Take up arguments that were put right: all of them, as data and targets belong together."""
        self.training, self.validation = _data_of(self.arguments)

    @property
    def models(self) -> list[Any]:
        """The model."""
        return [self.model]

    @property
    def history_kind(self) -> type:
        """Keras's class of what ``fit()`` returns."""
        kind: type = tf.keras.callbacks.History
        return kind

    @property
    def trained_parts(self) -> list[Any]:
        """What the training changes: the model and its optimizer."""
        return [self.model, self.model.optimizer]

    def leave_out_bar(self) -> None:
        """Have Keras draw no bar of its own, where something else shows how far it is, or nothing is to."""
        if self.arguments["verbose"] in ("auto", 1):
            self.arguments["verbose"] = 0
            self.bar_left_out = True

    def original(self, method: str) -> Any:
        """Return a method of the model as Keras (or the model's own class) defines it, bound to the model."""
        return getattr(type(self.model), method).__get__(self.model)

    def without_effect(self) -> list[str]:
        """Return a sentence for each argument that plain Keras would refuse or use, and that has no effect here."""
        notes = []
        if not self.training.kind.indexed and self.arguments["batch_size"] is not None:
            notes.append(f"batch_size has no effect: {self.training.kind} makes the batches.")
        if any(_is_backup(each) for each in tf.nest.flatten(self.arguments["callbacks"])):
            notes.append("BackupAndRestore has no effect: training is checkpointed and resumed without it.")
        return notes

    def callbacks(self) -> list[Any]:
        """Return the user's callbacks; ``BackupAndRestore`` is left out, our checkpoints take its place."""
        given = self.arguments["callbacks"]
        several = given.callbacks if isinstance(given, tf.keras.callbacks.CallbackList) else tf.nest.flatten(given)
        return [each for each in several if each is not None and not _is_backup(each)]

    @property
    def callbacks_may_add(self) -> bool:
        """Whether a callback has an ``on_epoch_end`` of its own, which may put metrics into ``logs``."""
        return any(adds_metrics(callback) for callback in self.callbacks())

    def length(self) -> Length:
        """Return how long the arguments say to train."""
        return Length(unit=Unit.EPOCHS, units=int(self.arguments["epochs"]) - int(self.arguments["initial_epoch"]))

    @property
    def assumed(self) -> frozenset[str]:
        """Fields among ``configuration_fills`` that nobody typed: Keras's defaults contradict no configuration."""
        fields = {"searcher.metric"}
        if not self.given & {"epochs", "initial_epoch"}:
            fields.add("searcher.max_length")
        if self.training.kind.indexed and self.arguments["batch_size"] is None:
            fields.add("hyperparameters.global_batch_size")
        return frozenset(fields)

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path; see ``assumed``.

        Used where the configuration is silent; where both speak, the configuration wins.

        Raises
        ------
        InvalidDataError
            If the length of an epoch cannot be known from the data and the arguments.
        """
        batch_size = self._own_batch_size()
        environment = self.context.env
        configured = int(environment.config.get("records_per_epoch") or 0)
        # Rows are cut for all slots together; data that come in batches are those of one slot.
        slots = 1 if self.training.kind.indexed or environment.native_parallel else environment.slots
        fills = {
            "searcher.max_length": self.length().model_dump(mode="json"),
            "searcher.metric": "loss" if self.validation is None else "val_loss",
            "hyperparameters.global_batch_size": batch_size * slots,
        }
        if not configured or self._own_steps() is not None:
            fills["records_per_epoch"] = self._own_records(self._counted_steps(), batch_size)
        return fills

    def per_slot_batch_size(self, environment: TrialEnvironment) -> int:
        """Return the records per batch of this process: the configuration's, else the call's own."""
        if "global_batch_size" not in environment.hparams:
            own = self._own_batch_size()
            return max(1, own // environment.ranks.size) if self.training.kind.indexed else own
        size = environment.per_slot_batch_size
        most = math.ceil(int(self.training.records or 0) / environment.ranks.size)
        return min(size, most) if self.training.kind.indexed else size

    def steps_per_epoch(self, environment: TrialEnvironment) -> int:
        """Return the batches of one epoch, for a configuration that is complete.

        ``records_per_epoch`` of the configuration rules; where it agrees with the data, an epoch is exactly what plain
        Keras makes of it, with its smaller last batch.
        """
        ranks = environment.ranks.size
        batch_size = self.per_slot_batch_size(environment) * ranks
        configured = int(environment.config.get("records_per_epoch") or 0)
        own = self._own_steps(batch_size)
        if not configured:
            return self._steps_of_rank(own or self._counted_steps(), ranks)
        if own is not None and self._agrees(configured, own, batch_size, ranks):
            return self._steps_of_rank(own, ranks)
        known = "global_batch_size" in environment.hparams
        return max(1, configured // (environment.per_slot_batch_size * ranks if known else batch_size))

    def _steps_of_rank(self, steps: int, ranks: int) -> int:
        """Return the batches of an epoch of each rank: of Sequences and generators, each has every so many-th batch."""
        dealt = self.training.kind in (Kind.SEQUENCE, Kind.GENERATOR)
        return math.ceil(steps / ranks) if dealt else steps

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch.

        Raises
        ------
        TrialDefinitionError
            If the searcher's metric cannot come out of this call.
        InvalidDataError
            If a process of the trial would have no data.
        """
        if "global_batch_size" in environment.hparams and not self._exceeding(self.arguments["batch_size"]):
            exceeding = self._exceeding(environment.per_slot_batch_size)
            if exceeding:
                logger.warning("hyperparameters.global_batch_size %s", exceeding)
        self._check_dataset(environment)
        self._check_division(environment)
        asked = [name for name in (environment.metric, *environment.metrics) if name]
        name_as_asked(self.model, asked, self.callbacks())
        check_shards(self.training, environment, "The training data")
        check_shards(self.validation, environment, "The validation data")
        check_compared(
            environment.metric, self.model, validated=self.validation is not None, may_add=self.callbacks_may_add
        )

    def _check_division(self, environment: TrialEnvironment) -> None:
        """Warn of batches that lose records, as the slots cannot have equal parts of them."""
        slots = max(1 if environment.native_parallel else environment.slots, environment.ranks.size)
        own = int(environment.hparams.get("global_batch_size") or self._own_batch_size())
        if self.training.kind.indexed and own >= slots and own % slots:
            logger.warning(
                "A batch of %d records cannot be divided among %d slots: each has %d records. A multiple of %d gives "
                "what one slot gives.",
                *(own, slots, own - own % slots, slots),
            )

    def is_share(self, obj: Any) -> bool:
        """Whether an object is a Dataset of which each process of the trial reads its part."""
        ranks = self.context.env.ranks.size
        return ranks > 1 and isinstance(obj, tf.data.Dataset) and self.context.is_shared(obj)

    def _check_dataset(self, environment: TrialEnvironment) -> None:
        """Refuse Datasets that would be read by every process whole, or never end."""
        slots = max(1 if environment.native_parallel else environment.slots, environment.ranks.size)
        data = self.training
        if slots > 1 and data.kind is Kind.DATASET and not self.context.is_shared(data.x):
            raise InvalidDataError(
                f"The training Dataset is not wrapped, and each of the {slots} processes would read all of it: call "
                "dataset = context.wrap_dataset(dataset) right after it is made."
            )
        held_out = self.validation
        if held_out is None or held_out.kind is not Kind.DATASET or self.arguments["validation_steps"] is not None:
            return
        if number_of(held_out.x.cardinality()) == tf.data.INFINITE_CARDINALITY:
            raise InvalidDataError(
                "The validation Dataset has no end: leave repeat() out, or say how many batches a validation has, by "
                "validation_steps of fit() or of context.configure_fit()."
            )

    def _own_batch_size(self) -> int:
        data, given = self.training, self.arguments["batch_size"]
        if data.kind.indexed:
            records, steps = int(data.records or 0), self.arguments["steps_per_epoch"]
            if given is not None:
                return min(int(given), records)
            return math.ceil(records / steps) if steps else min(DEFAULT_BATCH_SIZE, records)
        if data.kind is Kind.DATASET:
            size = dataset_batch_size(data.x)
        elif data.kind is Kind.GENERATOR:
            size = _rows(self._first_of_generator())
        else:
            size = _rows(self.source.first)
        if size is None:
            raise InvalidDataError(f"{data.kind} gives no batches: its elements are single numbers. Batch it first.")
        return size

    @property
    def source(self) -> DataSource:
        """The training Sequence as a source of data; its first item is read once, as in Keras."""
        if self._source is None or self._source.sequence is not self.training.x:
            stream = self.random_state if self.as_in_keras else None
            self._source = DataSource(self.training.x, stream, kept_elsewhere=[*self.trained_parts, *self.callbacks()])
        return self._source

    def not_here(self) -> None:
        """Leave the data as they were before the call: another process reads them."""
        if self._source is not None:
            self._source.give_back()

    def data_preserved(self) -> AbstractContextManager[None]:
        """Return a block in which what the training Sequence keeps may change; it is put back at its end."""
        return self.source.preserved() if self.training.kind is Kind.SEQUENCE else nullcontext()

    @property
    def follows_data(self) -> bool:
        """Whether the data say at the beginning of each epoch how long it is."""
        return self.training.kind is Kind.SEQUENCE and self.arguments["steps_per_epoch"] is None

    def _first_of_generator(self) -> Any:
        try:
            return self.training.x.peek()
        except StopIteration:
            raise InvalidDataError("The generator is exhausted: it gives no batch. Make a new one for fit().") from None

    def _own_steps(self, batch_size: int | None = None) -> int | None:
        """Return the batches of an epoch as the call alone knows them without reading data; None if it does not."""
        data, steps = self.training, self.arguments["steps_per_epoch"]
        if steps is not None:
            return int(steps)
        if data.kind.indexed:
            return math.ceil(int(data.records or 0) / (batch_size or self._own_batch_size()))
        if data.kind is Kind.SEQUENCE:
            return _positive(len(data.x), data.kind)
        if data.kind is Kind.DATASET and (cardinality := number_of(data.x.cardinality())) >= 0:
            return _positive(cardinality, data.kind)
        return None

    def _agrees(self, configured: int, own: int, batch_size: int, ranks: int) -> bool:
        """Return whether an epoch of the configuration's records is one of the call's batches, the last one smaller."""
        size = self._own_batch_size()
        if self.training.kind is Kind.DATASET and ranks > 1:  # of which the call has one rank's share
            return own == math.ceil(configured / batch_size)
        if configured == self._own_records(own, size):
            return True
        batches_come_ready = not self.training.kind.indexed and self.arguments["steps_per_epoch"] is None
        return batches_come_ready and own == math.ceil(configured / size)

    def _counted_steps(self) -> int:
        steps = self._own_steps()
        if steps is None and self.training.kind is Kind.DATASET:
            steps = count_batches(self.training.x, logger.warning)
        if steps is None:
            raise InvalidDataError(
                f"{self.training.kind} does not tell where an epoch ends: pass steps_per_epoch to fit(), or set "
                "records_per_epoch in the configuration."
            )
        return steps

    def _own_records(self, steps: int, batch_size: int) -> int:
        whole = self.training.records is not None and self.arguments["steps_per_epoch"] is None
        return int(self.training.records or 0) if whole else steps * batch_size

    def _exceeding(self, size: int | None) -> str | None:
        """Return what is said of a batch size above the number of records; None for one that is not."""
        if size is None or not self.training.kind.indexed or size <= int(self.training.records or 0):
            return None
        return f"is {size}, but there are only {self.training.records} records to train on: an epoch is one batch."


def _data_of(arguments: Mapping[str, Any]) -> tuple[Data, Data | None]:
    """Return what is trained on, and what is validated on.

    Raises
    ------
    InvalidDataError
        If the data cannot be used.
    """
    training = describe(arguments["x"], arguments["y"], arguments["sample_weight"])
    validation = describe_validation(arguments["validation_data"])
    if arguments["validation_split"] and validation is None:
        training, validation = training.split(arguments["validation_split"])
    if training.kind is Kind.GENERATOR:
        training = Data(Kind.GENERATOR, ReplayableStream(training.x))
    if validation is not None and validation.kind is Kind.GENERATOR:
        validation = Data(Kind.GENERATOR, ReplayableStream(validation.x, apart=True))
    return training, validation


def _title_of(callback: Any, given: Mapping[str, Any]) -> str:
    title = f"the callback {type(callback).__name__}"
    return title if title not in given else f"{title} ({len(given)})"


def _is_backup(callback: Any) -> bool:
    return isinstance(callback, tf.keras.callbacks.BackupAndRestore)


def _rows(batch: Any) -> int | None:
    leaves = [leaf for leaf in tf.nest.flatten(batch) if leaf is not None]
    shape = getattr(leaves[0], "shape", None) if leaves else None
    return int(shape[0]) if shape is not None and len(shape) else None


def _positive(count: int, kind: Kind) -> int:
    if count < 1:
        raise InvalidDataError(f"{kind} is empty: there are no batches to train on.")
    return count


def _unpacked(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """Put the Sequence of a ``SequenceAdapter`` into its place; return how it is to be read."""
    adapter = arguments[name]
    if isinstance(adapter, tf.keras.utils.Sequence):
        return internals.reading_of(adapter)
    if not isinstance(adapter, SequenceAdapter):
        return {}
    arguments[name] = adapter.sequence
    return {key: getattr(adapter, key) for key in QUEUE_ARGUMENTS}
