"""The files of ``deploy/kubernetes``, put together as ``kubectl apply -k`` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
COMPONENTS = ("gpu", "redis", "tls")

Manifest = dict[str, Any]


def documents(path: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document]


def manifests(*components: str) -> list[Manifest]:
    """Return all objects, with what these components add and change."""
    (base,) = documents(FOLDER / "kustomization.yaml")
    objects = [found for name in base["resources"] for found in documents(FOLDER / name)]
    for component in components:
        (kustomization,) = documents(FOLDER / component / "kustomization.yaml")
        for name in kustomization.get("resources", ()):
            objects += documents(FOLDER / component / name)
        for patch in kustomization["patches"]:
            wanted = patch["target"]
            (target,) = (each for each in objects if _is(each, wanted))
            for operation in yaml.safe_load((FOLDER / component / patch["path"]).read_text("utf-8")):
                apply(target, operation)
    return objects


def _is(found: Manifest, wanted: dict[str, str]) -> bool:
    version = f"{wanted['group']}/{wanted['version']}"
    return (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (version, wanted["kind"], wanted["name"])


def apply(target: Any, operation: dict[str, Any]) -> None:
    """Apply an operation of JSON Patch (RFC 6902): `add` or `replace`."""
    *way, last = operation["path"].strip("/").split("/")
    for step in way:
        target = target[int(step)] if isinstance(target, list) else target[step]
    if isinstance(target, list):
        assert (operation["op"], last) == ("add", "-")
        target.append(operation["value"])
    else:
        assert (operation["op"] == "add") == (last not in target), operation["path"]
        target[last] = operation["value"]


def pods(objects: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Yield the specification of every kind of pod, with a name for messages."""
    for found in objects:
        spec = found.get("spec", {})
        if found["kind"] == "Deployment":
            yield found["metadata"]["name"], spec["template"]["spec"]
        elif found["kind"] == "RayCluster":
            yield "head", spec["headGroupSpec"]["template"]["spec"]
            for group in spec["workerGroupSpecs"]:
                yield group["groupName"], group["template"]["spec"]
