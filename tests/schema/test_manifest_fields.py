"""What a bundle's manifest says to a master that is older."""

from __future__ import annotations

from det_native import PROTOCOL
from det_native.schema.manifests import BundleManifest, Interpreter, PlaceEntry, Program, ReadEntry

# The fields of the first version: what else is there, a master of that time refuses.
FIRST = {"format", "protocol", "interpreter", "program", "files", "values", "requirements"}


def manifest(*reads: ReadEntry, **later: object) -> BundleManifest:
    program = Program(kind="cells", framework="torch")
    interpreter = Interpreter(python="3.11.2", executable="")
    return BundleManifest.model_validate(
        {"protocol": PROTOCOL, "interpreter": interpreter, "program": program, "reads": reads, **later}
    )


def test_only_later_fields_that_are_used_are_sent() -> None:
    assert set(manifest().content()) == FIRST
    places = (PlaceEntry(text="/data/a.csv", target=".det_outside/data/a.csv"),)
    assert set(manifest(places=places).content()) == FIRST | {"places"}
    certain, other = ReadEntry(path="/a", where="[1]"), ReadEntry(path="/b", where="[2]", certain=False)
    found = manifest(certain, other).content()["reads"]
    assert found == [{"path": "/a", "where": "[1]"}, {"path": "/b", "where": "[2]", "certain": False}]


def test_what_is_sent_is_the_same_bundle() -> None:
    sent = manifest(ReadEntry(path="/a", where="[1]"))
    assert BundleManifest.model_validate(sent.content()).id == sent.id
