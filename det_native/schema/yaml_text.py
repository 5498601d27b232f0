"""YAML read into plain data, with bounds on what a text of a few lines may come to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

# What aliases may add to what is written. Nine lines of nine aliases each come to 10^9 values: gigabytes, once copied.
ALIASED_LIMIT = 100_000

# YAML 1.2 reads 1e-4 as a number; PyYAML, which follows 1.1, as text unless it is written 1.0e-4.
_FLOAT = re.compile(
    r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)|[-+]?(\d+\.\d*|\.\d+)|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


def parse_yaml(text: str) -> Any:
    """Return the plain data of a YAML text: with the numbers of YAML 1.2, and no key given twice.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML or nested too deeply, its aliases expand to too much, or a value is not what it looks like (a
        month 13, say).
    """
    import yaml

    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_expansion(node)
        return loader.construct_document(node)
    except ValueError as error:
        raise yaml.constructor.ConstructorError(None, None, str(error)) from None
    except RecursionError:
        raise yaml.constructor.ConstructorError(None, None, "it is nested too deeply to be read") from None
    finally:
        loader.dispose()


def _check_expansion(document: yaml.Node) -> None:
    """Refuse a document whose aliases expand to too many values; it is not expanded for that."""
    import yaml

    sizes: dict[int, int] = {}  # of each node with all below it; 0 while it is visited, so that a cycle ends

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        sizes[id(node)] = 0
        below = _children(node)
        sizes[id(node)] = total = 1 + sum(size(child) for child in below)
        if total - len(sizes) > ALIASED_LIMIT:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"the aliases (*name) here expand to more than {ALIASED_LIMIT:,} values",
                node.start_mark,
                "write out what is meant, or use fewer aliases of aliases",
            )
        return total

    size(document)


def _children(node: yaml.Node) -> list[yaml.Node]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader with the numbers of YAML 1.2, which refuses a key that is given twice."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: dict[str, Any] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            f"{key.value} is given twice (first in line {seen[key.value].line + 1})",
                            node.start_mark,
                            "keep one of the two",
                            key.start_mark,
                        )
                    seen[key.value] = key.start_mark
                    if key.value == "on":  # a name of ours; YAML 1.1 has it for true
                        key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep=deep)

    resolvers = {first: list(rules) for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    for first in "-+0123456789.":
        rules = [rule for rule in resolvers.get(first, []) if not rule[0].endswith(":float")]
        resolvers[first] = [*rules, ("tag:yaml.org,2002:float", re.compile(rf"^(?:{_FLOAT.pattern})$"))]
    Loader.yaml_implicit_resolvers = resolvers
    return Loader
