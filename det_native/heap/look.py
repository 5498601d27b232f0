"""What has changed since the last look: a walk of what some values lead to, which is repeated mostly in C.

Nothing of the user's is held from one look to the next but numbers, texts and other values: a look finds the objects
again from where they begin, by the places at which the last one found them. Python's collector lists what thousands of
objects hold at once, and where they hold the same, the list has the same addresses. Only what keeps its content
elsewhere (arrays, tensors), and what has more than counts (functions, classes), is read object by object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from det_native.heap.look_trees import Found, Tree
from det_native.heap.look_ways import can_change


class Look:
    """Objects that some values lead to, by identity, as they were at the last look."""

    def __init__(self) -> None:
        #: By the identity of the value that they begin with.
        self._trees: dict[int, Tree] = {}
        #: The tree of each object.
        self._tree_of: dict[int, Tree] = {}
        #: Trees that are another now; values without a name that others hold.
        self._others: set[Tree] = set()
        self._held: dict[int, Any] = {}

    def enter(self, values: Mapping[int, Any]) -> None:
        """Walk through the values that are not known yet."""
        for identity, value in values.items():
            if identity not in self._tree_of and can_change(value):
                self._trees[identity] = Tree(value, self._tree_of)

    def find(self, roots: Iterable[int], values: Mapping[int, Any]) -> Found:
        """Look again at what some values lead to. :meth:`renew` has to follow.

        Parameters
        ----------
        roots : iterable of int
            Identities of values that were entered.
        values : mapping of int to object
            By identity: all that have a name now.
        """
        found = Found(set(), set(), set())
        self._others = {tree for identity, tree in self._trees.items() if identity not in values}
        gone = set(self._others)
        sought = {tree.root for tree in gone}
        waiting, seen = self._trees_from(roots), set(gone)
        while waiting := (waiting | self._users_of(self._others) | self._trees_with(found.changed)) - seen:
            self._others |= {t for t in waiting if not t.find(values[t.root], found, sought=sought, held=self._held)}
            seen |= waiting
        for identity, value in self._held.items():
            self._trees[identity].find(value, found)
        return found

    def _users_of(self, trees: Collection[Tree]) -> set[Tree]:
        """Return the trees that lead to objects of others: where these are others now, they are walked again."""
        return {user for user in self._trees.values() if any(map(user.uses, trees))} if trees else set()

    def _trees_with(self, changed: set[int]) -> set[Tree]:
        """Return the trees with memory that has changed: what else looks into it is read anew, too."""
        memory = changed - self._tree_of.keys()
        return {tree for tree in self._trees.values() if memory and not tree.holders.keys().isdisjoint(memory)}

    def glimpse(self, roots: Iterable[int], values: Mapping[int, Any], most: int) -> Found:
        """Look again at so many objects of each value, and at no large memory. :meth:`renew` has to follow."""
        found = Found(set(), set(), set())
        trees = {tree for tree in self._trees_from(roots) if tree.root in values}
        self._others = {tree for tree in trees if not tree.find(values[tree.root], found, most)}
        return found

    def renew(self, values: Mapping[int, Any]) -> None:
        """Walk again through what is another now, and through new values; forget what has no name any more."""
        others = self._others
        users = self._users_of(others)
        while others:
            for tree in others:
                del self._trees[tree.root]
                for obj in tree.parents:
                    del self._tree_of[obj]
            self.enter({tree.root: values[tree.root] for tree in others if tree.root in values})
            others = {tree for tree in users & {*self._trees.values()} if not tree.outer <= self._tree_of.keys()}
        for tree in users:
            tree.used = {self._tree_of[obj].root for obj in tree.outer if obj in self._tree_of}
        self.enter(values)
        self._others, self._held = set(), {}

    def _trees_from(self, roots: Iterable[int]) -> set[Tree]:
        """Return the trees with all objects that values lead to."""
        waiting = {self._tree_of[root] for root in roots if root in self._tree_of}
        trees: set[Tree] = set()
        while waiting:
            trees |= waiting
            used = {root for tree in waiting for root in tree.used}
            waiting = {self._trees[root] for root in used if root in self._trees} - trees
        return trees

    def holders_of(self, objects: Iterable[int]) -> set[int]:
        """Return these objects, and all that lead to them."""
        waiting = set(objects)
        seen = set(waiting)
        while waiting:
            up: set[int] = set()
            for tree in self._trees.values():
                up.update(*map(tree.holders.__getitem__, tree.holders.keys() & waiting))
                up.update(map(tree.parents.__getitem__, tree.parents.keys() & waiting))
            waiting = up - seen
            seen |= waiting
        return seen

    def lost(self, roots: Iterable[int], values: Mapping[int, Any]) -> set[int]:
        """Return objects that were found from values that are gone: nobody has looked at them."""
        gone = [tree for tree in self._trees_from(roots) if tree.root not in values and tree.root not in self._held]
        return set().union(*(tree.parents for tree in gone))

    def reached_from(self, roots: Collection[int]) -> set[int]:
        """Return all objects, and memory, that values lead to."""
        held: dict[int, list[int]] = {}
        for tree in self._trees_from(roots):
            for obj, parent in tree.edges():
                held.setdefault(parent, []).append(obj)
        waiting, seen = set(roots), set(roots)
        while waiting:
            waiting = {obj for holder in waiting for obj in held.get(holder, ())} - seen
            seen |= waiting
        return seen

    def names_from(self, root: int) -> tuple[set[str], set[tuple[str, int]]]:
        """Return the global names that functions of a value look up, and the notebook's classes among what it holds."""
        trees = self._trees_from([root])
        return set().union(*(tree.names for tree in trees)), set().union(*(tree.classes for tree in trees))
