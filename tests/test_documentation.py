"""The documents are true: examples are valid, all fields are described, links lead somewhere, commands exist."""

from __future__ import annotations

import ast
import re
import typing
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from det_native.client.command import cli
from det_native.errors import ConfigurationError, UnsupportedFeatureError
from det_native.schema.config import ExperimentConfig
from det_native.schema.effects import fields_without_effect, refuse_unsupported
from det_native.schema.lengths import Length
from det_native.schema.loading import load_config
from det_native.schema.places import bare, model_of, tags_of

ROOT = Path(__file__).resolve().parent.parent
# What `make docs` has written may be older than the code.
GENERATED = {ROOT / "docs" / "api.md", *(ROOT / "docs" / "names").glob("*.md")}
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted({*(ROOT / "docs").rglob("*.md")} - GENERATED)]
CONFIGURATION = ROOT / "docs" / "configuration.md"
SECTIONS_OF_MESSAGES = {"capture.md": "Messages, and what to do", "cluster.md": "When something is wrong"}
BASE: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"metric": "val_loss", "max_length": {"batches": 500}},
}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")
_TARGET = r"\(([^)\s]+)(?: \"[^\"]*\")?\)"
_IMAGE = re.compile(rf"!\[([^\]]*)\]{_TARGET}")
_LINK = re.compile(rf"\[[^\]]*\]{_TARGET}")
_COMMAND = re.compile(r"^det (?:-m \S+ )?(?P<rest>[a-z].*)$")


@dataclass(frozen=True)
class Field:
    """A field of the schema: where it stands, and what pydantic knows of it in each member of a union."""

    path: str
    infos: tuple[FieldInfo, ...]


@dataclass(frozen=True)
class Row:
    """A row of a table: cells by the header of their column."""

    cells: dict[str, str]

    @property
    def names(self) -> list[str]:
        return _CODE.findall(next(iter(self.cells.values())))


def blocks(path: Path, *languages: str) -> list[str]:
    return [text for language, text in _FENCE.findall(path.read_text("utf-8")) if language in languages]


def tables(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of all tables with the heading that they stand under."""
    heading, header = "", []
    for line in _FENCE.sub("", path.read_text("utf-8")).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = cells
        elif not set(line) <= set("|-: "):
            yield heading, Row(dict(zip(header, cells, strict=True)))


def schema_fields() -> dict[str, Field]:
    """Return every field of ``ExperimentConfig``, sections entered, by dotted path."""
    found: dict[str, list[FieldInfo]] = defaultdict(list)

    def enter(prefix: str, annotation: Any) -> None:
        kind = bare(annotation)
        if typing.get_origin(kind) in (list, dict):
            enter(prefix, typing.get_args(kind)[-1])
        for member in tags_of(kind).values() or [kind]:
            model = model_of(member)
            if model is None or issubclass(model, RootModel | Length):
                continue
            for name, info in model.model_fields.items():
                path = f"{prefix}.{name}" if prefix else name
                found[path].append(info)
                enter(path, info.annotation)

    enter("", ExperimentConfig)
    return {path: Field(path, tuple(infos)) for path, infos in found.items()}


def described_fields() -> dict[str, list[Row]]:
    """Return the rows of ``docs/configuration.md`` by the field that they describe."""
    found: dict[str, list[Row]] = defaultdict(list)
    for heading, row in tables(CONFIGURATION):
        section = _CODE.fullmatch(heading)
        if next(iter(row.cells)) == "field" and "default" in row.cells:
            for name in row.names:
                found[f"{section[1]}.{name}" if section else name].append(row)
    return found


FIELDS = schema_fields()
DESCRIBED = described_fields()


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert len(FIELDS) > 100
    assert sorted(FIELDS.keys() - DESCRIBED.keys()) == []
    assert sorted(DESCRIBED.keys() - FIELDS.keys()) == []


def test_described_default_is_the_default() -> None:
    wrong = []
    for path, field in FIELDS.items():
        for row in DESCRIBED[path]:
            written = row.cells["default"]
            if not written.startswith("see ") and not any(_is_default(written, info) for info in field.infos):
                wrong.append(f"{path}: {written}")
    assert wrong == []


def _is_default(written: str, info: FieldInfo) -> bool:
    if info.is_required():
        return written == "required"
    default = info.get_default(call_default_factory=True)
    if default is None or default in ([], {}) or (isinstance(default, BaseModel) and not isinstance(default, Length)):
        return written == "–"
    if isinstance(default, Length):
        return written == "off" and default.units == 0
    code = _CODE.fullmatch(written)
    return code is not None and bool(yaml.safe_load(code[1]) == default)


@pytest.mark.parametrize("text", blocks(CONFIGURATION, "yaml", "python"))
def test_example_of_a_configuration_is_valid_and_runs(text: str) -> None:
    config: Any = text
    if "import det_native" in text:
        namespace: dict[str, Any] = {}
        exec(compile(text, "docs/configuration.md", "exec"), namespace)  # noqa: S102 (our own document)
        config = namespace["config"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load_config(config)
    refuse_unsupported(loaded)


def test_there_are_examples() -> None:
    assert len(blocks(CONFIGURATION, "yaml")) >= 3
    assert len(blocks(CONFIGURATION, "python")) >= 1


def test_other_examples_are_valid() -> None:
    for path in DOCUMENTS:
        for text in blocks(path, "python"):
            ast.parse(text, str(path))
        for text in blocks(path, "yaml") if path != CONFIGURATION else ():
            refuse_unsupported(load_config(BASE | yaml.safe_load(text)))


def test_error_of_the_documents_is_the_error() -> None:
    text = blocks(CONFIGURATION, "text")[0].strip()
    with pytest.raises(ConfigurationError) as caught:
        load_config({"searcher": {"max_length": {"epoch": 3}}, "resources": {"slot": 1}})
    assert str(caught.value) == text


def _refused_rows() -> list[Row]:
    return [row for _, row in tables(CONFIGURATION) if list(row.cells) == ["field", "for example"]]


@pytest.mark.parametrize("row", _refused_rows(), ids=lambda row: row.names[0])
def test_what_is_said_to_be_refused_is_refused(row: Row) -> None:
    example = yaml.safe_load(_CODE.findall(row.cells["for example"])[0])
    loaded = load_config(BASE | example, warn=False)
    with pytest.raises(UnsupportedFeatureError, match=rf"(?m)^  - {re.escape(row.names[0])}: "):
        refuse_unsupported(loaded, "keras")
    assert "Later" in " ".join(other.cells["meaning"] for other in DESCRIBED[row.names[0]])


def test_all_that_can_be_refused_has_an_example() -> None:
    source = (ROOT / "det_native" / "schema" / "effects.py").read_text("utf-8")
    refused = set(re.findall(r'yield f?"([a-z_.]+): ', source))
    refused.remove("resources.slots_per_trial")  # of frameworks of other packages only
    assert refused == {row.names[0] for row in _refused_rows()}


def test_no_effect_is_marked_where_it_is_so() -> None:
    known = fields_without_effect(_everything_set({"strategy": "fsdp", "fsdp_layers": ["Block"], "interface": "eth1"}))
    known |= fields_without_effect(_everything_set({"backend": "horovod"}))  # the two do not go together
    wrong = []
    for path in FIELDS:
        places = [path, path.rpartition(".")[0]]
        marked = any("No effect" in row.cells["meaning"] for place in places for row in DESCRIBED.get(place, ()))
        if marked != any(path == one or path.startswith(f"{one}.") for one in known):
            wrong.append(path)
    assert wrong == []


def _everything_set(distributed: dict[str, Any]) -> ExperimentConfig:
    """Return a configuration in which nothing else is at its default that may be without effect."""
    return load_config(
        BASE
        | {
            **dict.fromkeys(("workspace", "project", "entrypoint"), "one"),
            "environment": {
                "image": "one",
                "force_pull_image": True,
                "registry_auth": {"username": "one"},
                "pod_spec": {"one": 1},
                "ports": {"one": 1},
                "proxy_ports": [{"one": 1}],
                "add_capabilities": ["one"],
                "drop_capabilities": ["one"],
                "environment_variables": ["ONE=1"],
            },
            "bind_mounts": [{"host_path": "/one", "container_path": "two"}],
            "resources": {
                **dict.fromkeys(("shm_size", "slots", "max_slots", "priority"), 2),
                **dict.fromkeys(("agent_label", "resource_pool"), "one"),
                "weight": 2.0,
                "native_parallel": True,
                "is_single_node": True,
                "devices": ["one"],
            },
            "checkpoint_storage": {
                "type": "shared_fs",
                "host_path": "/one",
                "storage_path": "two",
                "propagation": "shared",
                "container_path": "/one",
                "tensorboard_path": "one",
            },
            "slurm": {"gpu_type": "one"},
            "pbs": {"slots_per_node": 1},
            "preemption_timeout": 1,
            "profiling": {"begin_on_batch": 1, "end_after_batch": 2, "sync_timings": False},
            "log_policies": [{"pattern": "one"}],
            "log_retention_days": 1,
            "retention_policy": {"log_retention_days": 1},
            "optimizations": {
                "grad_updates_size_file": "sizes.txt",
                **dict.fromkeys(("tensor_fusion_threshold", "tensor_fusion_cycle_time", "aggregation_frequency"), 2),
                "auto_tune_tensor_fusion": True,
                "average_training_metrics": True,
                "gradient_compression": True,
                "average_aggregated_gradients": False,
            },
            "distributed": distributed,
            "debug": True,
            **{name: {"one": 1} for name in ("internal", "security", "tensorboard_storage", "integrations")},
        },
        warn=False,
    )


def test_links_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        text = _FENCE.sub("", path.read_text("utf-8"))
        # An image may be what a link shows: it is looked at first, and then taken out.
        for target in [*(target for _, target in _IMAGE.findall(text)), *_LINK.findall(_IMAGE.sub("", text))]:
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            found = (path.parent / name).resolve() if name else path
            if not found.exists() or found in GENERATED or (anchor and anchor not in _anchors(found)):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert broken == []


def test_images_are_pictures_that_are_described() -> None:
    found = [(path, *image) for path in DOCUMENTS for image in _IMAGE.findall(_FENCE.sub("", path.read_text("utf-8")))]
    assert found
    for path, description, target in found:
        assert description, f"{path.relative_to(ROOT)}: {target}"
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).read_bytes().startswith(b"\x89PNG\r\n"), target


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(path: Path) -> Iterator[str]:
    """Yield what follows ``det`` wherever a document names a command of ours."""
    text = path.read_text("utf-8")
    for language, block in _FENCE.findall(text):
        if language in ("", "sh", "bash"):
            yield from (match["rest"] for line in block.splitlines() if (match := _COMMAND.match(line)))
    for line in _FENCE.sub("", text).splitlines():
        # In a table that sets old beside new, the first column has the commands of the old system.
        shown = line.split("|", 2)[-1] if line.startswith("|") and path.name == "migrating.md" else line
        yield from (match["rest"] for code in _CODE.findall(shown) if (match := _COMMAND.match(code)))


def test_commands_exist_with_their_options() -> None:
    for text in (text for path in DOCUMENTS for text in _commands(path)):
        words = text.split()
        command: click.Command = cli
        while isinstance(command, click.Group) and words:
            found = command.get_command(click.Context(command), words[0])
            assert found is not None, f"det {text}"
            command, words = found, words[1:]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, f"det {text}"


def test_every_command_is_described() -> None:
    described = {words[0] for text in _commands(ROOT / "docs" / "cluster.md") if (words := text.split())}
    found = {cli.get_command(click.Context(cli), name) for name in described}
    assert found == set(cli.commands.values())


@pytest.mark.parametrize("name", sorted(SECTIONS_OF_MESSAGES))
def test_messages_that_one_may_meet_are_in_the_code(name: str) -> None:
    code = _text_of_the_code()
    rows = [row for heading, row in tables(ROOT / "docs" / name) if heading == SECTIONS_OF_MESSAGES[name]]
    assert len(rows) >= 5
    parts = [part.strip() for row in rows for message in row.names for part in message.split("…")]
    assert [part for part in parts if part not in code] == []


def _text_of_the_code() -> str:
    sources = [*(ROOT / "det_native").rglob("*.py"), *(ROOT / "harness").rglob("*.py")]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    # Texts over several lines are written as several texts side by side.
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", text)
