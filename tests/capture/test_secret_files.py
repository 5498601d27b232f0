"""A configuration file with secrets stays here; the workers and who downloads the program never see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from det_native.capture.bundle import assemble
from det_native.capture.model import INCLUDED, Bundle, Capture, SourceFile
from det_native.schema.manifests import Cell, Program

WORD = "hunter2-of-the-bucket"
STORAGE = (
    f"checkpoint_storage:\n  type: url\n  url: s3://models\n  options: {{key: me, secret: {WORD}, region: north}}\n"
)
CONFIGURATIONS = {
    "options of a storage": STORAGE,
    "older names": f"checkpoint_storage: {{type: s3, bucket: b, access_key: me, secret_key: {WORD}}}",
    "registry": f"environment:\n  registry_auth: {{username: me, password: {WORD}}}",
    "webhook": f"notify:\n- webhook: https://hooks.example/{WORD}",
    "one entry": f"notify: {{email: me@example.org, secret: {WORD}}}",
    "JSON": json.dumps({"checkpoint_storage": {"type": "url", "url": "s3://b", "options": {"secret": WORD}}}),
}


def bundle_of(folder: Path, *files: SourceFile) -> Bundle:
    cell = Cell(number=1, cell_id=None, source="det.experimental.create(config='const.yaml', context_dir='.')")
    program = Program(kind="cells", framework="torch", cells=(cell,))
    return assemble(Capture(program=program, files=list(files)), context_dir=folder, protocol=1)


def contents(bundle: Bundle) -> bytes:
    return b"".join(one.read_bytes() if isinstance(one, Path) else one for one in bundle.contents.values())


def paths(bundle: Bundle) -> set[str]:
    return {file.path for file in bundle.manifest.files}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_configuration_with_secrets_is_not_sent_and_the_report_says_so(tmp_path: Path, text: str) -> None:
    name = "const.json" if text.startswith("{") else "const.yaml"
    (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "model_def.py").write_text("x = 1\n")
    bundle = bundle_of(tmp_path)
    assert paths(bundle) == {"model_def.py"}
    assert WORD.encode() not in contents(bundle)
    assert WORD not in bundle.manifest.model_dump_json()
    [row] = [row for row in bundle.report if row.status == "not sent"]
    assert row.what == name
    assert row.note.startswith("has secrets: not sent")
    assert WORD not in row.note


def test_other_configurations_with_the_same_secret_stay_here_and_the_rest_travels(tmp_path: Path) -> None:
    (tmp_path / "const.yaml").write_text(STORAGE)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "keys.yml").write_text(f"s3: [{WORD}]\n")
    (tmp_path / "data.yaml").write_text("region: north\nuser: me\n")
    (tmp_path / "shown.yaml").write_text("checkpoint_storage: {type: url, url: s3://b, options: '<secret 0123>'}\n")
    (tmp_path / "policy.yaml").write_text("checkpoint_storage: {save_trial_best: 3}\nnotify: [{email: a@b.org}]\n")
    (tmp_path / "broken.yaml").write_text("notify: [\n")
    bundle = bundle_of(tmp_path)
    assert paths(bundle) == {"data.yaml", "shown.yaml", "policy.yaml", "broken.yaml"}
    assert WORD.encode() not in contents(bundle)
    assert {row.what for row in bundle.report if row.note.startswith("has secrets")} == {"const.yaml", "inner/keys.yml"}


def test_a_file_that_a_cell_names_stays_here_too_unless_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "const.yaml").write_text(STORAGE)
    named = SourceFile(tmp_path / "const.yaml", "const.yaml", "named in cell [1] as 'const.yaml'")
    assert paths(bundle_of(tmp_path, named)) == set()
    assert paths(bundle_of(tmp_path, SourceFile(named.path, named.target, INCLUDED))) == {"const.yaml"}
    (tmp_path / ".detignore").write_text("!const.yaml\n")
    assert paths(bundle_of(tmp_path)) == {"const.yaml"}
