"""The import hook behind the ``determined`` alias.

The finder has to come first in ``sys.meta_path``: ``determined.keras`` is looked for in ``det_native.__path__``, and
the ordinary finder would load that file a second time under the alias's name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, FrameType, ModuleType

ALIAS = "determined"
TARGET = "det_native"


class AliasLoader(InspectLoader):
    """Puts the module called `target` into ``sys.modules`` under the name of the alias."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the import system make an empty module, so that it does not write our spec into the real one."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module by the real one, which the import system then takes from ``sys.modules``."""
        if module.__name__ == ALIAS and _has_tensorflow():
            from det_native.keras.old_arguments import install as give_old_names_their_meaning

            give_old_names_their_meaning()
        sys.modules[module.__name__] = _import_target(self.target)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the target, which ``python -m determined.launch.torch_distributed`` runs."""
        spec = find_spec(self.target)
        loader = spec.loader if spec is not None else None
        return loader.get_code(self.target) if isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """Return None: tracebacks read the file."""
        return None


class AliasFinder(MetaPathFinder):
    """Finds ``determined`` and ``determined.*`` in det_native, and words the error for names that are not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an aliased module, None for every other name.

        Raises
        ------
        ImportError
            For a name of the alias that det_native does not have.
        """
        if fullname == ALIAS:
            return None if self._real_one_is_there() else ModuleSpec(ALIAS, AliasLoader(TARGET), is_package=True)
        if fullname.startswith(f"{ALIAS}.") and sys.modules.get(ALIAS) is sys.modules.get(TARGET):
            return self._submodule(fullname)
        if fullname.startswith(f"{TARGET}.") and _asked_by_from_import(sys._getframe(1)):
            self._check_exists(fullname, path)
        return None

    def _submodule(self, fullname: str) -> ModuleSpec:
        target = TARGET + fullname.removeprefix(ALIAS)
        spec = find_spec(target)
        if spec is None:
            raise ModuleNotFoundError(_unknown(fullname), name=fullname)
        return ModuleSpec(fullname, AliasLoader(target), is_package=spec.submodule_search_locations is not None)

    def _check_exists(self, fullname: str, path: Sequence[str] | None) -> None:
        """Say, for ``from determined.x import name``, that the alias lacks the name.

        The module that the name is looked for in is det_native's own, so it is det_native's name that arrives here.
        """
        if any(_finds(finder, fullname, path) for finder in sys.meta_path if finder is not self):
            return
        raise ImportError(_unknown(ALIAS + fullname.removeprefix(TARGET)), name=fullname)

    def _real_one_is_there(self) -> bool:
        return any(_finds(finder, ALIAS, None) for finder in sys.meta_path if not isinstance(finder, AliasFinder))


def install() -> None:
    """Install the alias; once it is there, further calls change nothing.

    A module that was imported as a real ``determined`` stays what it is.
    """
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())


def _import_target(name: str) -> ModuleType:
    from det_native.frameworks import translated

    with translated(name.replace(TARGET, ALIAS, 1)):
        return importlib.import_module(name)


def _has_tensorflow() -> bool:
    return "tensorflow" in sys.modules or find_spec("tensorflow") is not None


def _finds(finder: object, name: str, path: Sequence[str] | None) -> bool:
    """Whether `finder` finds a module of this name; a mere folder of that name (a namespace package) does not count."""
    find = getattr(finder, "find_spec", None)
    spec = find(name, path, None) if find is not None else None
    return spec is not None and spec.origin is not None


def _asked_by_from_import(frame: FrameType | None) -> bool:
    """Whether the import machinery is looking for a name of ``from package import name`` that the package lacks."""
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def _unknown(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    return (
        f"`{attribute}` is not in `{module}`, which here is an alias of `{module.replace(ALIAS, TARGET, 1)}`: "
        f"det_native does not have it. Leave it out of the code, or put what it does into a file of yours."
    )
