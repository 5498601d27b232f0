"""What a bundle's manifest says to a master that is older."""

from __future__ import annotations

from det_native import PROTOCOL
from det_native.schema.manifests import (
    BundleManifest,
    CallSite,
    Cell,
    EarlierTraining,
    Interpreter,
    PlaceEntry,
    Program,
    ReadEntry,
    WiderProgram,
)

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


def test_trainings_of_earlier_calls_move_with_their_cells() -> None:
    assert "earlier" not in manifest().content()["program"]
    cells = [Cell(number=number, cell_id=None, source="fit()") for number in (1, 2, 3)]
    trainings = [
        EarlierTraining(
            site=CallSite(kind="fit", cell=place, line=1, column=0, running=place),
            experiment_id=place,
            checkpoint=f"c{place}",
            batch=1,
            history=f"h{place}",
            size=2,
        )
        for place in (0, 1)
    ]
    bundle = manifest(wider=WiderProgram(cells=(1, cells[0], 2)))
    program = bundle.program.model_copy(update={"cells": tuple(cells), "earlier": tuple(trainings)})
    bundle = bundle.model_copy(update={"program": program})
    assert {"h0", "h1"} <= bundle.hashes()
    [moved] = bundle.with_wider("x").program.earlier
    assert (moved.checkpoint, moved.site.cell, moved.site.running) == ("c1", 0, 0)
    assert BundleManifest.model_validate(bundle.content()).id == bundle.id
