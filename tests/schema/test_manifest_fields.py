"""What a bundle's manifest says to a master that is older."""

from __future__ import annotations

from det_native import PROTOCOL
from det_native.schema.manifests import (
    BundleManifest,
    CallSite,
    EarlierTraining,
    Interpreter,
    PlaceEntry,
    Program,
    ReadEntry,
)
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExitReason

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


def test_a_bundle_of_an_earlier_version_loads_without_its_second_program() -> None:
    bundle = manifest()
    assert manifest(wider={"cells": [1, 0], "made": ["a.npy"]}, widened="x: other rows").id == bundle.id
    program = {**bundle.content()["program"], "prompts": False}
    assert BundleManifest.model_validate({**bundle.content(), "program": program}).id == bundle.id
    error = {"type": "ValueError", "message": "no", "traceback": "", "cell": 3, "prompts": False}
    assert UserErrorInfo.model_validate(error).cell == 3
    assert ExitReason("INPUTS_DIFFER") is ExitReason.USER_ERROR


def test_the_histories_of_earlier_calls_belong_to_a_bundle() -> None:
    assert "earlier" not in manifest().content()["program"]
    site = CallSite(kind="fit", cell=0, line=1, column=0, running=0)
    training = EarlierTraining(site=site, experiment_id=1, checkpoint="c", batch=1, history="h", size=2)
    program = manifest().program.model_copy(update={"earlier": (training,)})
    bundle = manifest(program=program)
    assert "h" in bundle.hashes()
    assert BundleManifest.model_validate(bundle.content()).id == bundle.id
