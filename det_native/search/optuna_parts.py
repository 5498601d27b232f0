"""Optuna's samplers and pruners, found by the names that a configuration gives them, and made with its options.

A part is written as its name (``tpe``) or with options (``{name: tpe, n_startup_trials: 5}``). Which there are, and
what their options are, Optuna's own classes say.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from det_native.errors import ConfigurationError, MissingDependencyError, Problem
from det_native.schema.conditions import in_order, is_active
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    DoubleHyperparameter,
    IntHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
    parse_space,
)
from det_native.schema.searcher import OptunaSearcher, Part

# What else a sampler imports.
_MORE: dict[str, tuple[str, ...]] = {"gp": ("scipy", "torch"), "cmaes": ("cmaes",)}

# What an option may be in a configuration, by the words of its annotation.
_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
_PARTS = {"BaseSampler": "sampler", "BasePruner": "pruner"}


class _UnfitError(Exception):
    """What is wrong with a part of a configuration."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def check_searcher(searcher: OptunaSearcher, space: Mapping[str, Any]) -> None:
    """Refuse a search that Optuna cannot run here as it is configured.

    Raises
    ------
    MissingDependencyError
        If Optuna, or what its sampler needs beside it, is not installed.
    ConfigurationError
        If there is no such sampler or pruner, one does not take an option, or the sampler cannot weigh several metrics
        or search these hyperparameters.
    """
    problems = list(_problems(searcher, space))
    if problems:
        raise ConfigurationError("This search cannot be run by Optuna:", problems)


def check_installed(sampler: Part) -> None:
    """Refuse a sampler that cannot run here.

    Raises
    ------
    MissingDependencyError
        If Optuna, or what this sampler needs beside it, is not installed.
    """
    name = name_of(sampler)
    missing = [each for each in ("optuna", *_MORE.get(_plain(name), ())) if importlib.util.find_spec(each) is None]
    if missing:
        raise MissingDependencyError(
            f"searcher.sampler: {name} needs {' and '.join(missing)}, which the environment of the master (with "
            "local=True: this one) does not have: pip install 'det-native[optuna]' there, or choose another searcher."
        )


def name_of(part: Part) -> str:
    """Return the name of a sampler or pruner."""
    return str(part["name"] if isinstance(part, Mapping) else part)


def make_study(searcher: OptunaSearcher, seed: int) -> Any:
    """Return a new study in memory, with the sampler and the pruner of a configuration.

    Raises
    ------
    MissingDependencyError, ConfigurationError
        See :func:`check_searcher`.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = _made("sampler", "searcher.sampler", searcher.sampler, {"seed": seed, "constant_liar": True})
        pruner = None
        if searcher.prunes:
            assert searcher.pruner is not None
            known = {"max_resource": max(searcher.max_length.units, 1)}
            pruner = _made("pruner", "searcher.pruner", searcher.pruner, known)
    except _UnfitError as unfit:
        raise ConfigurationError("This search cannot be run by Optuna:", [unfit.problem]) from None
    directions = ["minimize" if metric.smaller_is_better else "maximize" for metric in searcher.compared]
    # A name that is always the same: by it and the number of a trial, Hyperband chooses the trial's bracket.
    return optuna.create_study(
        sampler=sampler, pruner=pruner or optuna.pruners.NopPruner(), directions=directions, study_name=f"det-{seed}"
    )


def suggested_values(trial: Any, space: Mapping[tuple[str, ...], Leaf]) -> dict[tuple[str, ...], Any]:
    """Return what a trial of Optuna's has for the hyperparameters that exist with it.

    Parameters
    ----------
    space : mapping
        The hyperparameters by their paths, those that a condition names first.
    """
    values: dict[tuple[str, ...], Any] = {}
    for path, leaf in space.items():
        if is_active(leaf, values):
            values[path] = suggested(trial, ".".join(path), leaf)
    return values


def suggested(trial: Any, name: str, leaf: Leaf) -> Any:
    """Return the value that a trial of Optuna's has for a hyperparameter."""
    match leaf:
        case ConstHyperparameter():
            return leaf.val
        case IntHyperparameter():
            return trial.suggest_int(name, leaf.minval, leaf.maxval)
        case DoubleHyperparameter():
            return trial.suggest_float(name, leaf.minval, leaf.maxval)
        case LogHyperparameter():  # the exponent is drawn
            return leaf.value(trial.suggest_float(name, leaf.minval, leaf.maxval))
        case CategoricalHyperparameter():  # by its place, since a value may be a list
            return leaf.vals[trial.suggest_categorical(name, range(len(leaf.vals)))]


def _problems(searcher: OptunaSearcher, space: Mapping[str, Any]) -> Iterator[Problem]:
    check_installed(searcher.sampler)
    name = name_of(searcher.sampler)
    try:
        refusal = _refusal(searcher, space)
        if refusal is None:
            return
        one = searcher.model_copy(update={"metrics": []})
        if len(searcher.compared) > 1 and _refusal(one, space) is None:
            yield Problem(
                "searcher.metrics",
                f"has {len(searcher.compared)} metrics, but the sampler {name} looks at one.",
                "Use another sampler (tpe and nsga2 take several), or one metric.",
            )
            return
    except ConfigurationError as error:
        yield from error.problems
        return
    yield Problem("searcher.sampler", f"is {name}, which cannot search these hyperparameters. Optuna says: {refusal}")


def _refusal(searcher: OptunaSearcher, space: Mapping[str, Any]) -> str | None:
    """Return what the sampler says to a first trial, None if it has values for it."""
    trial = make_study(searcher, 0).ask()
    try:
        suggested_values(trial, dict(in_order(leaves(parse_space(space)))))
    except (ValueError, ArithmeticError) as error:
        return str(error)
    return None


def _classes(kind: str) -> dict[str, type]:
    """Return the classes of a kind by the plain forms of their names."""
    import optuna

    module, base = (
        (optuna.samplers, optuna.samplers.BaseSampler)
        if kind == "sampler"
        else (optuna.pruners, optuna.pruners.BasePruner)
    )
    ending = kind.capitalize()
    return {
        _plain(name.removesuffix(ending)): found
        for name, found in vars(module).items()
        if inspect.isclass(found) and issubclass(found, base) and not inspect.isabstract(found)
    }


def _plain(name: str) -> str:
    """Return what is the same for ``nsga2`` and ``NSGAII``, ``cma_es`` and ``CmaEs``."""
    return name.lower().replace("_", "").replace("-", "").replace("2", "ii").replace("3", "iii")


def _made(kind: str, where: str, part: Part, known: Mapping[str, Any]) -> Any:
    """Return a part; `known` are values for options that it takes and the configuration does not set."""
    name = name_of(part)
    classes = _classes(kind)
    found = classes.get(_plain(name))
    if found is None:
        names = sorted({_written(each) for each in classes})
        close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
        remedy = f"Did you mean {close[0]}?" if close else f"There are {', '.join(names)}."
        raise _UnfitError(Problem(where, f"is {name!r}, which is no {kind} of Optuna.", remedy))
    parameters = dict(inspect.signature(found).parameters)
    if kind == "sampler" and where == "searcher.sampler" and "seed" not in parameters:
        raise _UnfitError(Problem(where, f"is {name}, which takes no seed: a search could not be continued."))
    given = {key: value for key, value in part.items() if key != "name"} if isinstance(part, Mapping) else {}
    options = {key: _option(f"{where}.{key}", key, value, parameters, name, known) for key, value in given.items()}
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in options:
            raise _UnfitError(
                Problem(f"{where}.{key}", f"is missing, which {name} needs.", "Write " + _example(name, key))
            )
    options = {key: value for key, value in known.items() if key in parameters} | options
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a part is experimental is for whoever writes Python
            return found(**options)
    except (ValueError, TypeError) as error:
        raise _UnfitError(Problem(where, f"({name}) is refused by Optuna: {error}")) from error


def _option(
    where: str, key: str, value: Any, parameters: Mapping[str, inspect.Parameter], name: str, known: Mapping[str, Any]
) -> Any:
    if key == "seed":
        raise _UnfitError(Problem(where, "is not set here.", "It follows from reproducibility.experiment_seed."))
    if key not in parameters:
        close = difflib.get_close_matches(key, list(parameters), n=1, cutoff=0.6)
        others = ", ".join(each for each in parameters if each != "seed") or "none"
        raise _UnfitError(
            Problem(where, f"is no option of {name}.", f"Did you mean {close[0]}?" if close else f"It has: {others}.")
        )
    words = {
        word.strip() for word in str(parameters[key].annotation).replace("<class '", "").replace("'>", "").split("|")
    }
    for base, kind in _PARTS.items():
        if base in words and isinstance(value, str | Mapping):
            return _made(kind, where, value, known)  # type: ignore[arg-type]
    kinds = tuple(_KINDS[word] for word in words if word in _KINDS)
    if not kinds:
        raise _UnfitError(
            Problem(where, "is an object of Python's, which a configuration cannot give.", "Leave it out.")
        )
    whole_as_real = float in kinds and isinstance(value, int) and not isinstance(value, bool)
    if not whole_as_real and type(value) not in kinds:
        raise _UnfitError(
            Problem(where, f"must be {' or '.join(sorted(kind.__name__ for kind in kinds))}, not {value!r}.")
        )
    return value


def _written(plain: str) -> str:
    """Return how the plain form of a name is written in a configuration."""
    return plain.replace("iii", "3").replace("ii", "2")


def _example(name: str, key: str) -> str:
    return f"{{name: {name}, {key}: ...}}."
