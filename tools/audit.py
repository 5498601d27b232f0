"""Look for known vulnerabilities in the pinned dependencies: pip-audit for Python, ``npm audit`` for the front end.

``make audit`` runs it. It ends with 0 if no advisory names a pinned version, 1 if some do, and 3 if a list was not
looked up: both tools ask services of the internet, and pip-audit ends with 0 where those know nothing of a package.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ("constraints.txt", "constraints-3.13.txt")
LOCK = "jupyter_ext/package-lock.json"
CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 3
_NAMED = 5


@dataclass
class Report:
    """The result for one list of dependencies.

    Attributes
    ----------
    source : str
        The file with the pins.
    looked_up : int
        Packages that were looked up.
    vulnerabilities : list of str
        One line for each advisory.
    skipped : list of str
        Packages that the service does not know.
    failure : str
        Why nothing was looked up.
    """

    source: str
    looked_up: int = 0
    vulnerabilities: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def status(self) -> int:
        """Return the exit status."""
        if self.vulnerabilities:
            return VULNERABLE
        return NOT_AUDITED if self.failure or self.skipped else CLEAN

    def lines(self) -> list[str]:
        """Return the lines to print."""
        result = [f"{self.source}: {advisory}" for advisory in self.vulnerabilities]
        if self.failure:
            result.append(
                f"{self.source}: not audited: {self.failure} "
                "Run `make audit` on a machine that reaches the services of PyPI and npm."
            )
        elif self.skipped:
            names = ", ".join(self.skipped[:_NAMED]) + (", ..." if len(self.skipped) > _NAMED else "")
            result.append(f"{self.source}: {len(self.skipped)} packages not audited, unknown to pypi.org: {names}")
        if not result:
            result.append(f"{self.source}: {self.looked_up} packages, no known vulnerability")
        return result


def read_pip_audit(source: str, output: str, errors: str) -> Report:
    """Return the report of what ``pip-audit --format json`` wrote."""
    answer = _object(output)
    if answer is None:
        return Report(source, failure=_last_line(errors) or "pip-audit wrote nothing.")
    report = Report(source)
    for package in answer["dependencies"]:
        if "skip_reason" in package:
            report.skipped.append(package["name"])
            continue
        report.looked_up += 1
        for advisory in package["vulns"]:
            fixed = ", ".join(advisory.get("fix_versions") or ["no version"])
            report.vulnerabilities.append(f"{package['name']} {package['version']}: {advisory['id']}, fixed in {fixed}")
    if not report.looked_up:
        report.failure = "pypi.org answered for none of the packages."
    return report


def read_npm_audit(source: str, output: str, errors: str) -> Report:
    """Return the report of what ``npm audit --json`` wrote."""
    answer = _object(output)
    if answer is None or "vulnerabilities" not in answer:
        reason = str((answer or {}).get("message") or _last_line(errors) or "npm wrote nothing")
        return Report(source, failure=f"{reason.rstrip('.')}.")
    report = Report(source, looked_up=answer["metadata"]["dependencies"]["total"])
    for name, package in answer["vulnerabilities"].items():
        # A package is also listed where only something that it depends on is vulnerable: that is then a string.
        advisories = [advisory for advisory in package["via"] if isinstance(advisory, dict)]
        for advisory in advisories:
            report.vulnerabilities.append(
                f"{name} {advisory['range']} ({advisory['severity']}): {advisory['title']}, {advisory['url']}"
            )
    return report


def _object(output: str) -> dict[str, Any] | None:
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _run(*command: str, folder: Path = ROOT) -> tuple[str, str]:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "", f"There is no {command[0]}."
    return done.stdout, done.stderr


def main(pip_audit: str) -> int:
    """Audit all lists, print what is known, and return the exit status."""
    options = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
    reports = [read_pip_audit(source, *_run(pip_audit, "--requirement", source, *options)) for source in CONSTRAINTS]
    npm = _run("npm", "audit", "--json", "--package-lock-only", folder=(ROOT / LOCK).parent)
    reports.append(read_npm_audit(LOCK, *npm))
    for report in reports:
        print("\n".join(report.lines()), flush=True)
    statuses = {report.status for report in reports}
    return next((status for status in (VULNERABLE, NOT_AUDITED) if status in statuses), CLEAN)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
