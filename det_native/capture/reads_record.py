"""What one piece of code does with names: a record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Import:
    """What an import binds a name to."""

    module: str
    attribute: str = ""
    level: int = 0


@dataclass
class Reads:
    """What one piece of code does with names.

    Attributes
    ----------
    reads : dict of str to int
        Names that it may read before it has bound them for certain, each with the first line. One with ``*`` is a
        pattern, of a name that is put together: ``globals()[f"make_{kind}"]``.
    certain : set of str
        Those of them that are read whenever it runs, and that nothing above in it may have bound.
    loaded : set of str
        All names that it reads, its own among them.
    wanted : set of str
        Those that its own lines read, have not bound and cannot do without.
    guarded : set of str
        Those of `reads` that it can do without: it asks for them in ``try`` with a handler of ``NameError``.
    bound : set of str
        Names that it may bind.
    surely : set of str
        Those that it has bound for certain, once it has run.
    late_bound : set of str
        Names that functions of it bind when they are called: ``global count``.
    deleted : set of str
    imports : dict of str to Import
        Names of it that are bound by nothing but an import.
    stars : list of (module, level)
    functions : dict of str to frozenset of str
        Functions and classes that it defines, with the names that they look up.
    stored_into : set of str
        Names of which it sets an attribute or an item, or which it updates in place (``+=``).
    called : set of str
        Names that it gives to a call or of which it calls a method.
    runs_text : bool
        It may bind names that do not stand in it: ``exec``, ``globals()``.
    texts : set of str
        Texts in it that could be names.
    known : dict of str to frozenset of str
        For names of `reads`: those that it has bound for certain whenever it reads the name.
    """

    reads: dict[str, int] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    late_bound: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)
    stars: list[tuple[str, int]] = field(default_factory=list)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    stored_into: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    runs_text: bool = False
    texts: set[str] = field(default_factory=set)
    known: dict[str, frozenset[str]] = field(default_factory=dict)
