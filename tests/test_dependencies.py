"""Dependencies are pinned exactly and come from the registries; an audit that did not happen is never passed."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ("constraints.txt", "constraints-3.13.txt")
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*")
_SHA512 = re.compile(r"sha512-[A-Za-z0-9+/]{86}==")
_ADDRESS = re.compile(r"://|^git|^file:|^link:|^github:|^[\w-]+/[\w-]+$|^workspace:")


def audit() -> ModuleType:
    """Load ``tools/audit.py``."""
    specification = importlib.util.spec_from_file_location("det_audit", ROOT / "tools" / "audit.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # its dataclasses look for it there
    specification.loader.exec_module(module)
    return module


def lock() -> dict[str, Any]:
    """Read the front end's lock file."""
    return dict(json.loads((ROOT / "jupyter_ext" / "package-lock.json").read_text())["packages"])


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_python_packages_are_pinned_exactly_and_by_name_only(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) > 50
    assert not [line for line in lines if not _PIN.fullmatch(line)]
    names = [re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines]
    assert len(names) == len(set(names))


def test_what_the_package_asks_for_is_pinned_and_has_no_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [project["project"]["dependencies"], project["dependency-groups"]["dev"]]
    extras = project["project"]["optional-dependencies"].values()
    asked = [Requirement(line) for part in (*lists, *extras) for line in part if isinstance(line, str)]
    assert not [requirement.name for requirement in asked if requirement.url]
    pinned = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    needed = {re.sub(r"[-_.]+", "-", Requirement(line).name).lower() for part in lists for line in part}
    assert needed <= pinned


def test_packages_of_the_front_end_have_a_version_and_a_hash_and_come_from_npm() -> None:
    packages = {path: entry for path, entry in lock().items() if path}
    assert len(packages) > 300
    assert not [path for path, entry in packages.items() if not re.match(r"\d+\.\d+\.\d+", entry["version"])]
    assert not [path for path, entry in packages.items() if not _SHA512.fullmatch(entry.get("integrity", ""))]
    # Without an address npm takes a package from the registry that it is set to.
    assert not [path for path, entry in packages.items() if "resolved" in entry or entry.get("link")]
    package = json.loads((ROOT / "jupyter_ext" / "package.json").read_text())
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert not [name for name, version in versions.items() if _ADDRESS.search(version)]


# As pip-audit 2.10 and npm 10 wrote them.
_SKIPPED = {"name": "absl-py", "skip_reason": "Dependency not found on PyPI and could not be audited: absl-py (2.5.1)"}
_SOUND = {"name": "anyio", "version": "4.16.0", "vulns": []}
_VULNERABLE = {
    "name": "flask",
    "version": "0.5",
    "vulns": [{"id": "PYSEC-2019-179", "fix_versions": ["1.0"], "aliases": ["CVE-2019-1010083"], "description": "..."}],
}


def pip_audit(*packages: dict[str, Any]) -> str:
    """Return what pip-audit says of packages."""
    return json.dumps({"dependencies": list(packages), "fixes": []})


def test_an_audit_that_knows_nothing_of_a_package_is_not_passed() -> None:
    module = audit()
    cases = {
        module.CLEAN: pip_audit(_SOUND),
        module.VULNERABLE: pip_audit(_SOUND, _VULNERABLE, _SKIPPED),
        module.NOT_AUDITED: pip_audit(_SKIPPED, _SOUND),
    }
    for status, output in cases.items():
        assert module.read_pip_audit("constraints.txt", output, "").status == status
    (advisory, skipped) = module.read_pip_audit("c.txt", pip_audit(_SOUND, _VULNERABLE, _SKIPPED), "").lines()
    assert advisory == "c.txt: flask 0.5: PYSEC-2019-179, fixed in 1.0"
    assert "absl-py" in skipped
    for output, errors in ((pip_audit(_SKIPPED), ""), ("", "ERROR:pip_audit._cli: connection refused"), ("", "")):
        report = module.read_pip_audit("constraints.txt", output, errors)
        assert report.status == module.NOT_AUDITED
        assert "not audited" in report.lines()[0]
        assert "a machine that reaches the services" in report.lines()[0]


def test_the_front_ends_audit_names_the_advisory_or_says_that_there_was_none() -> None:
    module = audit()
    refused = {"message": "405 Method Not Allowed - POST /-/npm/v1/security/advisories/bulk", "statusCode": 405}
    report = module.read_npm_audit("package-lock.json", json.dumps(refused), "")
    assert report.status == module.NOT_AUDITED
    assert "405 Method Not Allowed" in report.lines()[0]
    advisory = {
        "title": "ReDoS in minimist",
        "url": "https://github.com/advisories/GHSA-1",
        "severity": "high",
        "range": "<1.2.6",
    }
    known = {"minimist": {"via": [advisory]}, "mkdirp": {"via": ["minimist"]}}
    total = {"dependencies": {"total": 2}}
    for vulnerabilities, status in (({}, module.CLEAN), (known, module.VULNERABLE)):
        output = json.dumps({"vulnerabilities": vulnerabilities, "metadata": total})
        assert module.read_npm_audit("package-lock.json", output, "").status == status
    assert report.looked_up == 0
