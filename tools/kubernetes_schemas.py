"""Writes ``tests/deploy/kubernetes_schemas.json``, by which the files of ``deploy/kubernetes`` are checked.

    pip install kubernetes-validate==1.37.0        (in an environment of its own; no part of the project needs it)
    python tools/kubernetes_schemas.py

The kinds of Kubernetes are cut out of its published OpenAPI schemas (Apache-2.0), which that package has. Of them stay
names, types and what is required; what our files do not enter stays without its inner names. ``RayCluster`` has the
fields of KubeRay's custom resource ``ray.io/v1`` (``rayclusters.ray.io`` of ray-project/kuberay, Apache-2.0; commit
017710c025a86af5225c0e68cd78fb06e2918296, with ``secretName`` of 1.6.2): these are written down below, since the CRD is
900 kB of which all but these lines are Kubernetes's own schema of a pod.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KUBERNETES = "1.32.0"
TARGET = Path(__file__).resolve().parents[1] / "tests" / "deploy" / "kubernetes_schemas.json"
KINDS = ("Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount", "Namespace")
GROUPS = {"Deployment": "-apps", "NetworkPolicy": "-networking"}
#: What is not entered: long, and not ours.
_CLOSED = {
    "affinity", "ephemeralContainers", "managedFields", "lifecycle", "windowsOptions", "seLinuxOptions", "status",
    "topologySpreadConstraints", "ownerReferences", "resourceClaims", "dnsConfig", "hostAliases", "readinessGates",
    "schedulingGates", "volumeDevices", "volumeAttributesClassName", "dataSource", "dataSourceRef", "resizePolicy",
}  # fmt: skip
_VOLUMES = {"name", "emptyDir", "persistentVolumeClaim", "secret", "configMap"}

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
FLAG: dict[str, Any] = {"type": "boolean"}
TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}


def record(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields and no others."""
    made: dict[str, Any] = {"type": "object", "properties": fields, "additionalProperties": False}
    return made | ({"required": list(required)} if required else {})


def one_of(*values: str) -> dict[str, Any]:
    """Return the schema of one of these texts."""
    return {"type": "string", "enum": list(values)}


def list_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


class Kubernetes:
    """Schemas of Kubernetes, from the package."""

    def __init__(self) -> None:
        import kubernetes_validate

        package = Path(kubernetes_validate.__file__).parent
        self._folder = package / "kubernetes-json-schema" / f"v{KUBERNETES}-local-strict"
        self._definitions = json.loads((self._folder / "_definitions.json").read_text())["$defs"]
        self.kept: dict[str, Any] = {}

    def kind(self, name: str) -> dict[str, Any]:
        """Return the schema of a kind, all that it refers to in ``kept``."""
        return self._cut(json.loads((self._folder / f"{name.lower()}{GROUPS.get(name, '')}-v1.json").read_text()))

    def definition(self, name: str) -> dict[str, Any]:
        """Return a reference to a definition such as ``io.k8s.api.core.v1.PodTemplateSpec``."""
        return self._cut({"$ref": f"_definitions.json#/$defs/{name}"})

    def _cut(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._cut(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        cut: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ("description", "$schema", "$id") or key.startswith("x-kubernetes"):
                continue
            if key == "properties":
                cut[key] = {name: {} if name in _CLOSED else self._cut(inner) for name, inner in value.items()}
            else:
                cut[key] = self._cut(value)
        return cut

    def _reference(self, name: str) -> dict[str, Any]:
        short = name.rpartition(".")[2]
        if short not in self.kept:
            self.kept[short] = {}  # it may refer to itself
            definition = dict(self._definitions[name])
            if short == "Volume":
                definition["properties"] = {
                    field: inner for field, inner in definition["properties"].items() if field in _VOLUMES
                }
            self.kept[short] = self._cut(definition)
        return {"$ref": f"#/definitions/{short}"}


def ray_cluster(kubernetes: Kubernetes) -> dict[str, Any]:
    """Return the schema of KubeRay's ``RayCluster``."""
    core = "io.k8s.api.core.v1."
    pod = kubernetes.definition(core + "PodTemplateSpec")
    environment = list_of(kubernetes.definition(core + "EnvVar"))
    credential = record(value=TEXT, valueFrom=kubernetes.definition(core + "EnvVarSource"))
    head = record(
        ("template",),
        template=pod,
        rayStartParams=TEXTS,
        enableIngress=FLAG,
        headService=kubernetes.definition(core + "Service"),
        serviceType=TEXT,
        resources=TEXTS,
        labels=TEXTS,
    )
    group = record(
        ("groupName", "maxReplicas", "minReplicas", "template"),
        groupName=TEXT,
        replicas=NUMBER,
        minReplicas=NUMBER,
        maxReplicas=NUMBER,
        numOfHosts=NUMBER,
        idleTimeoutSeconds=NUMBER,
        suspend=FLAG,
        rayStartParams=TEXTS,
        resources=TEXTS,
        labels=TEXTS,
        scaleStrategy=record(workersToDelete=list_of(TEXT)),
        template=pod,
    )
    autoscaler = record(
        env=environment,
        envFrom=list_of(kubernetes.definition(core + "EnvFromSource")),
        idleTimeoutSeconds=NUMBER,
        image=TEXT,
        imagePullPolicy=TEXT,
        resources=kubernetes.definition(core + "ResourceRequirements"),
        securityContext=kubernetes.definition(core + "SecurityContext"),
        upscalingMode=one_of("Default", "Aggressive", "Conservative"),
        version=one_of("v1", "v2"),
        volumeMounts=list_of(kubernetes.definition(core + "VolumeMount")),
    )
    spec = record(
        ("headGroupSpec",),
        authOptions=record(mode=one_of("disabled", "token"), enableK8sTokenAuth=FLAG, secretName=TEXT),
        autoscalerOptions=autoscaler,
        enableInTreeAutoscaling=FLAG,
        gcsFaultToleranceOptions=record(
            externalStorageNamespace=TEXT, redisAddress=TEXT, redisPassword=credential, redisUsername=credential
        ),
        headGroupSpec=head,
        headServiceAnnotations=TEXTS,
        managedBy=TEXT,
        rayVersion=TEXT,
        suspend=FLAG,
        workerGroupSpecs=list_of(group),
    )
    return record(
        ("apiVersion", "kind", "metadata", "spec"),
        apiVersion=one_of("ray.io/v1"),
        kind=one_of("RayCluster"),
        metadata=kubernetes.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
        spec=spec,
    )


def main() -> None:
    """Write the file."""
    kubernetes = Kubernetes()
    kinds = {name: kubernetes.kind(name) for name in KINDS} | {"RayCluster": ray_cluster(kubernetes)}
    comment = (
        f"Made by tools/kubernetes_schemas.py, which says of what: Kubernetes {KUBERNETES} and KubeRay 1.6.2, both "
        "Apache-2.0. Names and types only."
    )
    sections = {"kinds": kinds, "definitions": dict(sorted(kubernetes.kept.items()))}
    # A line for each, so that a difference can be read.
    lines = [
        f'"{name}": {{\n' + ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in section.items()) + "\n}"
        for name, section in sections.items()
    ]
    TARGET.write_text("{\n" + ",\n".join([f'"comment": {json.dumps(comment)}', *lines]) + "\n}\n")


if __name__ == "__main__":
    main()
