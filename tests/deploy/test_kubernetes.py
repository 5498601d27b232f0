"""The files of ``deploy/kubernetes``: valid by the published schemas, and closed to strangers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from manifests import COMPONENTS, FOLDER, ROOT, Manifest, documents, manifests, pods

from det_native._version import __version__
from det_native.master.config import parse_arguments

SCHEMAS = json.loads((Path(__file__).parent / "kubernetes_schemas.json").read_text())
CHOICES = [(), *((component,) for component in COMPONENTS), COMPONENTS]
DOCKERFILE = (FOLDER / "Dockerfile").read_text()


def named(objects: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def problems(found: Manifest) -> list[str]:
    schema = SCHEMAS["kinds"][found["kind"]] | {"definitions": SCHEMAS["definitions"]}
    return [f"{error.json_path}: {error.message}" for error in jsonschema.Draft7Validator(schema).iter_errors(found)]


@pytest.mark.parametrize("components", CHOICES, ids=lambda components: "+".join(components) or "plain")
def test_objects_are_valid(components: tuple[str, ...]) -> None:
    objects = manifests(*components)
    assert {each["kind"] for each in objects} >= {"RayCluster", "Deployment", "NetworkPolicy", "PersistentVolumeClaim"}
    assert [(each["metadata"]["name"], problem) for each in objects for problem in problems(each)] == []


def test_wrong_objects_are_not_valid() -> None:
    cluster = named(manifests(), "RayCluster", "det-ray")
    cluster["spec"]["enableInTreeAutoscalling"] = True
    cluster["spec"]["authOptions"]["mode"] = "tokens"
    del cluster["spec"]["workerGroupSpecs"][0]["maxReplicas"]
    cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    assert len(problems(cluster)) == 4


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("components", CHOICES, ids=lambda components: "+".join(components) or "plain")
def test_kustomize_makes_the_same(components: tuple[str, ...], tmp_path: Path) -> None:
    copied = shutil.copytree(FOLDER, tmp_path / "kubernetes")
    if components:
        with (copied / "kustomization.yaml").open("a") as stream:
            stream.write(f"components: {json.dumps(components)}\n")
    made = subprocess.run(["kubectl", "kustomize", copied], capture_output=True, text=True, check=False, timeout=60)
    assert made.returncode == 0, made.stderr
    (kustomization,) = documents(FOLDER / "kustomization.yaml")
    (image,) = kustomization["images"]
    text = json.dumps(manifests(*components)).replace(
        f'"image": "{image["name"]}"', f'"image": "{image["newName"]}:{image["newTag"]}"'
    )
    expected = json.loads(text)
    for each in expected:
        if each["kind"] != "Namespace":
            each["metadata"]["namespace"] = kustomization["namespace"]
    found = list(yaml.safe_load_all(made.stdout))
    assert _ordered(found) == _ordered(expected)


def _ordered(objects: list[Any]) -> list[Any]:
    return sorted(objects, key=lambda each: (each["kind"], each["metadata"]["name"]))


def test_pods_have_no_rights() -> None:
    for name, pod in pods(manifests(*COMPONENTS)):
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True, name
        assert context["runAsUser"] > 0, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        # The head's account is KubeRay's own: its autoscaler asks Kubernetes for pods.
        assert pod.get("automountServiceAccountToken") is (None if name == "head" else False), name
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            assert {"cpu", "memory"} <= container["resources"]["limits"].keys(), name
            assert not container["image"].endswith(":latest"), name
            assert container["image"] == "det-native" or re.search(r":\d+\.\d+\.\d+", container["image"]), name
    objects = manifests(*COMPONENTS)
    assert not {each["kind"] for each in objects} & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    assert not any(each["kind"] in ("Secret", "Ingress") for each in objects)


def test_nothing_is_open_to_the_network() -> None:
    objects = manifests(*COMPONENTS)
    for each in objects:
        assert each.get("spec", {}).get("type", "ClusterIP") == "ClusterIP"
    assert named(objects, "RayCluster", "det-ray")["spec"]["headGroupSpec"]["serviceType"] == "ClusterIP"
    closed = named(objects, "NetworkPolicy", "closed")["spec"]
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress"]}
    for each in objects:
        if each["kind"] == "NetworkPolicy":
            for rule in each["spec"].get("ingress", ()):
                assert rule["from"]
                assert all(rule["from"])


def test_ray_wants_a_token_and_the_master_has_it() -> None:
    objects = manifests()
    cluster = named(objects, "RayCluster", "det-ray")
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    variables = {each["name"]: each for each in master_container(objects)["env"]}
    assert variables["RAY_AUTH_MODE"]["value"] == "token"
    # KubeRay's secret has the name of the cluster.
    secret = {"name": cluster["metadata"]["name"], "key": "auth_token"}
    assert variables["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == secret
    assert variables["DET_RAY_ADDRESS"]["value"] == f"ray://{cluster['metadata']['name']}-head-svc:10001"
    assert variables["DET_LAUNCHER"]["value"] == "ray"
    (head,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert {"containerPort": 10001, "name": "client"} in head["ports"]


def test_workers_come_and_go() -> None:
    spec = named(manifests("gpu"), "RayCluster", "det-ray")["spec"]
    assert spec["enableInTreeAutoscaling"] is True
    assert [group["groupName"] for group in spec["workerGroupSpecs"]] == ["cpu", "gpu"]
    for group in spec["workerGroupSpecs"]:
        assert (group["minReplicas"], group["replicas"]) == (0, 0)
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        variables = {each["name"]: each["value"] for each in container["env"]}
        # Ray waits so long for the trials that write checkpoints; Kubernetes kills after that.
        assert int(variables["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"]) < pod["terminationGracePeriodSeconds"]
    gpus = spec["workerGroupSpecs"][1]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert gpus["nvidia.com/gpu"] == "1"


def master_container(objects: list[Manifest]) -> Manifest:
    deployment = named(objects, "Deployment", "det-master")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    (container,) = deployment["template"]["spec"]["containers"]
    found: Manifest = container
    return found


def test_the_master_takes_its_arguments(tmp_path: Path) -> None:
    container = master_container(manifests())
    assert container["command"][:3] == ["python", "-m", "det_native.master"]
    config = parse_arguments(container["command"][3:], {})
    assert config.loopback
    assert (str(config.home.path), config.port) == ("/data/home", 8080)
    assert f":{config.port}/api/v1/health" in container["livenessProbe"]["exec"]["command"][-1]
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    command = [
        {"/tls/tls.crt": f"{tmp_path}/cert.pem", "/tls/tls.key": f"{tmp_path}/key.pem"}.get(word, word)
        for word in master_container(manifests("tls"))["command"][3:]
    ]
    served = parse_arguments(command, {})
    assert (served.loopback, served.scheme, served.port) == (False, "https", 8443)


def ray_version() -> str:
    (pinned,) = re.findall(r"(?m)^ray==(.+)$", (ROOT / "constraints.txt").read_text())
    assert isinstance(pinned, str)
    return pinned


def test_versions_are_those_of_the_project() -> None:
    pinned = ray_version()
    assert named(manifests(), "RayCluster", "det-ray")["spec"]["rayVersion"] == pinned
    assert f'"ray[default]=={pinned}"' in DOCKERFILE
    assert f"ARG DET_NATIVE={__version__}\n" in DOCKERFILE
    (kustomization,) = documents(FOLDER / "kustomization.yaml")
    assert kustomization["images"][0]["newTag"] == __version__


def test_the_image_is_pinned_and_not_roots() -> None:
    lines = re.sub(r"\\\n\s*", "", DOCKERFILE).splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    instructions = [word[0] for word in words]
    assert set(instructions) <= {"FROM", "ARG", "SHELL", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD"}
    (base,) = (word[1] for word in words if word[0] == "FROM")
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)
    assert [word[1] for word in words if word[0] == "USER"] == ["1000"]
    # The last command that is run is before the user is changed: nothing is installed after it.
    assert instructions.index("USER") > max(place for place, name in enumerate(instructions) if name == "RUN")
    for line in lines:
        assert not re.search(r"\bsudo\b|curl|https?://|:latest", line) or line.startswith("#"), line
    (install,) = (line for line in lines if "pip install" in line)
    packages = re.findall(r'"([^"]+)"', install)
    assert packages == ["det-native[ray,s3,torch]==${DET_NATIVE}", f"ray[default]=={ray_version()}"]
    assert "--constraint" in install
    assert "--no-cache-dir" in DOCKERFILE
    assert "rm -rf /var/lib/apt/lists/*" in DOCKERFILE
