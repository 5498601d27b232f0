"""A check counts for every bundle that it could not tell from the one that it was made with."""

from __future__ import annotations

from typing import Any

import pytest
from master_parts import Master, manifest

from det_native.schema.manifests import BundleManifest, CallSite, Cell, Interpreter, Program, ValueEntry


def bundle(*numbers: int, **changes: Any) -> BundleManifest:
    cells = tuple(
        Cell(number=number, cell_id=f"id{number}", source=f"x{place} = 1", reason=f"[{number}] is used")
        for place, number in enumerate(numbers)
    )
    call = CallSite(kind="create", cell=len(cells) - 1, line=1, column=0)
    program = Program(kind="cells", framework="torch", cells=cells, call=call)
    return manifest().model_copy(update={"program": program, **changes})


def test_numbers_of_cells_make_another_bundle_but_no_other_check() -> None:
    assert bundle(1, 2).id != bundle(3, 4).id
    assert bundle(1, 2).check_key == bundle(3, 4).check_key


@pytest.mark.parametrize(
    "changed",
    [
        bundle(1, 2, 3),
        bundle(1, 2, values=(ValueEntry(name="x", sha256="a" * 64, size=1),)),
        bundle(1, 2, requirements=("numpy",)),
        bundle(1, 2, interpreter=Interpreter(python="3.11.8", executable="")),
        bundle(1, 2, interpreter=Interpreter(python="3.11.7", executable="", packages={"torch": "2"})),
        bundle(1, 2, program=Program(kind="script", framework="torch", command=("train.py",))),
    ],
    ids=["cells", "values", "requirements", "python", "packages", "script"],
)
def test_what_a_check_could_find_fault_with_makes_another_key(changed: BundleManifest) -> None:
    assert changed.check_key != bundle(1, 2).check_key


def create(master: Master, sent: BundleManifest) -> dict[str, Any]:
    answer = master.client.post("/api/v1/bundles", json=sent.model_dump(mode="json"))
    assert answer.status_code == 200, answer.text
    created: dict[str, Any] = answer.json()
    return created


def test_the_same_cells_run_again_are_not_checked_again(master: Master) -> None:
    first = create(master, bundle(1, 2))
    assert not first["checked"]
    again = create(master, bundle(3, 4))
    assert (again["id"] != first["id"], again["checked"]) == (True, False)
    assert master.client.post(f"/api/v1/bundles/{first['id']}/check").json()["ok"]
    master.launcher.check_result = {"ok": False, "problems": []}
    assert master.get(f"/bundles/{again['id']}/created")["checked"]
    assert master.client.post(f"/api/v1/bundles/{again['id']}/check").json()["ok"]
    assert create(master, bundle(5, 6))["checked"]
    other = create(master, bundle(1, 2, requirements=("numpy",)))
    assert not other["checked"]
    assert not master.client.post(f"/api/v1/bundles/{other['id']}/check").json()["ok"]
    assert not create(master, bundle(7, 8, requirements=("numpy",)))["checked"]
