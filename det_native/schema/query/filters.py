"""The filters of ``det.experiments()``, of ``det experiment list`` and of REST, as parts of a query. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from det_native.errors import ArgumentError
from det_native.schema.query.moments import span_of
from det_native.schema.query.parser import parse, state_named
from det_native.schema.query.tree import Comparison, Name, Node, all_of, names_of


@dataclass(frozen=True)
class Filters:
    """What experiments are asked for; None for what does not matter.

    Attributes
    ----------
    state : str, optional
        By either name.
    name : str, optional
        The name has this in it.
    labels : sequence of str
        Has all of them.
    project : str, optional
        In this project, or in a folder of it.
    metric : str, optional
        The best trial has a value of this metric.
    since : str, optional
        Created then or later: a date, a time or an age.
    archived : bool
        Archived ones, too. A query that says something of that settles it.
    """

    query: str | None = None
    state: str | None = None
    name: str | None = None
    labels: Sequence[str] = ()
    project: str | None = None
    metric: str | None = None
    since: str | None = None
    archived: bool = False

    def tree(self) -> Node | None:
        """Return the query of all this.

        Raises
        ------
        ArgumentError
            If the query does not parse, or there is no such state or time.
        """
        parts: list[Node] = []
        query = None if self.query is None else parse(self.query)
        if query is not None:
            parts.append(query)
        if self.state is not None:
            parts.append(_fact("state", "=", state_named(self.state).value))
        if self.name is not None:
            parts.append(_fact("name", "~", self.name))
        parts += [_fact("label", "=", label) for label in self.labels]
        if self.project is not None:
            parts.append(_fact("project", ":", self.project.strip("/")))
        if self.metric is not None:
            parts.append(Comparison(Name("metric", (self.metric,)), "<=", ("inf",)))
        if self.since is not None:
            if span_of(self.since, datetime.now(UTC)) is None:
                raise ArgumentError(
                    f"since={self.since!r} is not a time: write a date (2026-11-01), a time (2026-11-01T10:30) or an "
                    "age (7d)."
                )
            parts.append(_fact("created", ">=", self.since))
        if not self.archived and Name("field", ("archived",)) not in names_of(query):
            parts.append(_fact("archived", "=", "no"))
        return all_of(parts)

    def parameters(self) -> dict[str, str | list[str] | None]:
        """Return them as parameters of REST, None for those that do not matter."""
        return {
            "query": self.query,
            "state": self.state,
            "name": self.name,
            "label": list(self.labels) or None,
            "project": self.project,
            "metric": self.metric,
            "since": self.since,
            "archived": "true" if self.archived else None,
        }

    @property
    def all(self) -> bool:
        """Whether nothing but archived ones is left out."""
        return self == Filters(archived=self.archived)


def _fact(name: str, operator: str, value: str) -> Comparison:
    return Comparison(Name("field", (name,)), operator, (value,))
