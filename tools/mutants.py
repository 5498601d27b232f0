"""Change modules in one place at a time, and count the changes that their tests find; ``make mutants`` runs it.

It takes a sample of the mutants of each module in ``tools/mutants.toml``, the same one until the module changes, runs
the tests of the module on each of them in a copy of the repository, and prints those that no test found, then a table.
``make mutants MODULES="retention decide"`` tries those whose paths have one of these words. A mutant that is not found
is a missing test, or does the same as the module.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "mutants.toml"
SAMPLE = 12
# Another one takes another sample: figures on a sample for which tests were written say too much.
SEED = int(os.environ.get("MUTANTS_SEED", "1"))
# A mutant that goes on for ever is found by the processor time that its tests take.
LIMIT_FACTOR, LIMIT_EXTRA_S = 2, 5
# Mistakes that people make. The other operators of cosmic-ray end in a TypeError at once, which says nothing of tests.
OPERATORS = (
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_Lt_GtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_LtE_Gt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_Gt_LtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_GtE_Lt",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
LEFT_OUT = (".git", ".venv*", "node_modules", ".mypy_cache", ".ruff_cache", ".hypothesis", "__pycache__")

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutation:
    """A change: an operator of cosmic-ray, which of its places in the module, and where that begins."""

    operator: str
    occurrence: int
    start: Position


@dataclass
class Result:
    """What the tests of a module found; `folders` has the folders of the tests that found something."""

    path: str
    tried: int = 0
    folders: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)


def mutations(source: str) -> Iterator[Mutation]:
    """Yield all changes of a module; cosmic-ray is only in the environment of ``make mutants``."""
    import parso.python.tree  # noqa: F401 (before cosmic_ray, which imports it in a circle otherwise)
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        yield from (Mutation(name, occurrence, start) for occurrence, start in enumerate(starts))


def mutated(source: str, mutation: Mutation) -> str:
    """Return the source of a module with a change."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = mutate_code(source, get_operator(f"core/{mutation.operator}")(), mutation.occurrence)
    assert code is not None
    return str(code)


def spans_without_effect(source: str) -> list[tuple[Position, Position]]:
    """Return where a change does nothing: annotations, what only a type checker imports, and ``frozen=True``."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            nodes.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            nodes.append(node.annotation)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes.append(node)
        elif isinstance(node, ast.ClassDef):
            nodes += node.decorator_list
    return [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in nodes]  # type: ignore[attr-defined]


def sample(path: str, source: str, candidates: Sequence[Mutation], count: int) -> list[Mutation]:
    """Draw changes at `count` places, in their order: a place that many operators know is as likely as others."""
    spans = spans_without_effect(source)
    by_start: dict[Position, list[Mutation]] = {}
    for mutation in candidates:
        if not any(start <= mutation.start < end for start, end in spans):
            by_start.setdefault(mutation.start, []).append(mutation)
    starts = [start for start in by_start if not is_star(source, start)]
    chance = random.Random(f"{SEED}:{path}")
    drawn = sorted(chance.sample(sorted(starts), min(count, len(starts))))
    return [chance.choice(by_start[start]) for start in drawn]


def is_star(source: str, start: Position) -> bool:
    """Return whether a star stands there that is no product: cosmic-ray takes those of parameters for one."""
    line, column = start
    lines = source.splitlines(keepends=True)
    before = "".join(lines[: line - 1]) + lines[line - 1][:column]
    return lines[line - 1][column] == "*" and before.rstrip()[-1:] in ("(", "[", "{", ",", ":", "=")


def folder_of_failure(output: str) -> str:
    """Return the folder of the test that failed, as pytest's summary names it."""
    match = re.search(r"^(?:FAILED|ERROR) tests/(\S*?)/?[^/\s]*\.py", output, re.MULTILINE)
    return match[1] if match and match[1] else "tests"


def changed_line(source: str, code: str) -> str:
    """Return the number of the first line that a change touches, and the line after it."""
    pairs = zip(source.splitlines(), code.splitlines(), strict=False)
    number, line = next((number, after) for number, (before, after) in enumerate(pairs, 1) if before != after)
    return f"{number}: {line.strip()}"


class Copy:
    """A copy of the repository in which the tests run, so that no other program sees a mutant.

    Parameters
    ----------
    root : Path
        Where it is.
    python : Path
        The Python that runs the tests.
    """

    def __init__(self, root: Path, python: Path) -> None:
        self.root = root
        places = [root, root / "harness", root / "jupyter_ext"]
        self._output = root.parent / "output.txt"
        self._process = subprocess.Popen(
            [str(python), str(ROOT / "tools" / "pytest_forks.py")],
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, tests: Sequence[str], limit_s: int | None = None) -> tuple[bool, str, float]:
        """Run tests; return whether they failed, what was printed, and the seconds of processor time."""
        arguments = [*tests, "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long and not soak"]
        arguments += ["--hypothesis-profile", "quick", "--hypothesis-seed", str(SEED)]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(
            json.dumps({"arguments": arguments, "output": str(self._output), "limit_s": limit_s}),
            file=self._process.stdin,
            flush=True,
        )
        code, seconds = self._process.stdout.readline().split()
        # What a signal has ended has printed no summary.
        output = self._output.read_text(encoding="utf-8", errors="replace") if int(code) >= 0 else f"FAILED {tests[0]}"
        return int(code) != 0, output, float(seconds)

    def write(self, path: str, code: str) -> None:
        """Replace a module; its byte code goes, for two changes in a second look the same by time and size."""
        module = self.root / path
        module.write_text(code, encoding="utf-8")
        for cached in module.parent.glob(f"__pycache__/{module.stem}.*"):
            cached.unlink()


def try_module(copy: Copy, path: str, tests: Sequence[str]) -> Result:
    """Try the mutants of a module."""
    source = (copy.root / path).read_text(encoding="utf-8")
    failed, output, seconds = copy.run(tests)
    if failed:
        raise SystemExit(f"The tests of {path} fail without a mutant:\n{output}")
    limit_s = int(seconds) * LIMIT_FACTOR + LIMIT_EXTRA_S
    result = Result(path)
    for mutation in sample(path, source, list(mutations(source)), SAMPLE):
        code = mutated(source, mutation)
        copy.write(path, code)
        failed, output, _ = copy.run(tests, limit_s)
        result.tried += 1
        if failed:
            result.folders[folder_of_failure(output)] += 1
        else:
            result.survivors.append(changed_line(source, code))
    copy.write(path, source)
    return result


def table(results: Sequence[Result]) -> str:
    """Return the results as Markdown."""
    rows = ["| module | mutants | found | by tests in |", "|---|---|---|---|"]
    for result in results:
        folders = ", ".join(f"{folder} {count}" for folder, count in sorted(result.folders.items()))
        rows.append(f"| {result.path} | {result.tried} | {result.folders.total()} | {folders} |")
    total = sum(result.folders.total() for result in results)
    rows.append(f"| together | {sum(result.tried for result in results)} | {total} | |")
    return "\n".join(rows)


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of the listed modules by the tests of a Python; return the exit status."""
    python, words = Path(arguments[0]).absolute(), arguments[1:]
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["module"]
    modules = [module for module in listed if not words or any(word in module["path"] for word in words)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder) / "repository"
        shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        results = []
        with Copy(root, python) as copy:
            for module in modules:
                result = try_module(copy, module["path"], module["tests"])
                results.append(result)
                print(f"{result.path}: {result.folders.total()} of {result.tried} found", flush=True)
                for survivor in result.survivors:
                    print(f"  not found: {survivor}", flush=True)
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
