"""Trial classes given to ``create()``: found by name, and told by the framework they are for."""

from __future__ import annotations

from pathlib import Path

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.experimental.context_modules import import_from
from det_native.frameworks import framework_taking, known_frameworks, translated, trial_class_names, trial_class_titles
from det_native.schema.manifests import Framework
from det_native.trial import Trial


def find_trial_class(trial_def: object, context_dir: Path | None) -> type[Trial]:
    """Return the Trial class.

    Parameters
    ----------
    trial_def : type or str
        The class, or ``"module:Class"`` with a module that can be imported, in `context_dir` first.
    context_dir : Path or None

    Raises
    ------
    ArgumentError
        If there is no such module or class.
    TrialDefinitionError
        If it is no subclass of a Trial.
    """
    found = _imported(trial_def, context_dir) if isinstance(trial_def, str) else trial_def
    if not isinstance(found, type):
        what = "an instance; pass the class itself" if isinstance(found, Trial) else f"{type(found).__name__}"
        raise TrialDefinitionError(f'create() takes a Trial class, or "module:Class"; this is {what}.')
    if any(base.__module__.partition(".")[0] == "determined" for base in found.__mro__):
        raise TrialDefinitionError(
            f"{found.__qualname__} is a class of the `determined` package that is installed here, whose classes train "
            "on Determined's own platform only. Without it (pip uninstall determined), `import determined` gives "
            "det_native's classes of the same names; a name that det_native lacks is told of then."
        )
    if not issubclass(found, Trial) or found is Trial:
        raise TrialDefinitionError(
            f"{found.__qualname__} is not a subclass of {trial_class_titles()}; create() takes a Trial class."
        )
    return found


def framework_of(trial_class: type[Trial]) -> Framework:
    """Return the framework that a Trial class is for.

    Raises
    ------
    TrialDefinitionError
        If it derives from no framework's Trial class.
    UnsupportedFeatureError
        If this version does not train classes of that framework.
    """
    framework = framework_taking(trial_class)
    if framework is not None:
        return framework.name
    for base in trial_class.__mro__:
        if any(f"{base.__module__}.".startswith(f"{one.api}.") for one in known_frameworks()):
            raise UnsupportedFeatureError(
                f"{base.__name__} comes with a later version of det_native; create() takes a {trial_class_names()} now."
            )
    raise TrialDefinitionError(f"{trial_class.__qualname__} must derive from {trial_class_titles()}.")


def _imported(name: str, context_dir: Path | None) -> object:
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute.isidentifier():
        hint = f" create(config={name!r}) trains its entrypoint." if name.endswith((".yaml", ".yml", ".json")) else ""
        raise ArgumentError(f'trial_def must be a Trial class or "module:Class", not {name!r}.{hint}')
    with translated(name):
        try:
            module = import_from(context_dir, module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            where = f" in {context_dir} or" if context_dir else ""
            raise ArgumentError(f"trial_def {name!r}: there is no module {error.name!r}{where} on sys.path.") from None
    if not hasattr(module, attribute):
        raise ArgumentError(f"trial_def {name!r}: module {module_name!r} has no {attribute!r}.")
    found: object = getattr(module, attribute)
    return found
