"""The contract of checkpoint storage, over local folders and fsspec."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import fsspec
import pytest

from det_native.errors import CheckpointCorruptError, CheckpointNotFoundError, StorageError
from det_native.schema.manifests import CheckpointFile, CheckpointManifest
from det_native.storage import multipart
from det_native.storage.checkpoints import CheckpointStorage

FILES = {"weights.safetensors": os.urandom(300_000), "state/optimizer.json": b'{"lr": 0.1}', "state/deep/empty": b""}


def manifest(name: str | None = None, *, batch: int = 10, created: str = "2026-01-01T00:00:00Z") -> CheckpointManifest:
    return CheckpointManifest(
        uuid=name or str(uuid.uuid4()),
        framework="torch",
        framework_version="2.13",
        det_version="0.1.0",
        batch=batch,
        experiment_id=1,
        trial_id=2,
        run_id="run",
        bundle_id=None,
        hparams={"lr": 0.1},
        created=created,
    )


def write(directory: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


def publish(storage: CheckpointStorage, **fields: object) -> CheckpointManifest:
    _, complete = storage.publish(write(storage.workspace()), manifest(**fields))  # type: ignore[arg-type]
    return complete


class Stored:
    """Reaches into the stored files of a checkpoint, as damage does."""

    def __init__(self, uri: str, name: str) -> None:
        self.fs, root = fsspec.core.url_to_fs(uri)
        self.root = f"{root}/{name}"

    def read(self, path: str) -> bytes:
        return bytes(self.fs.cat_file(f"{self.root}/{path}"))

    def write(self, path: str, content: bytes) -> None:
        self.fs.makedirs(self.root, exist_ok=True)
        self.fs.pipe_file(f"{self.root}/{path}", content)

    def remove(self, path: str) -> None:
        self.fs.rm_file(f"{self.root}/{path}")


@pytest.fixture
def storage(uri: str) -> CheckpointStorage:
    return CheckpointStorage(uri)


def test_what_is_published_is_fetched(storage: CheckpointStorage, tmp_path: Path) -> None:
    workspace = write(storage.workspace())
    location, complete = storage.publish(workspace, manifest())
    assert location == f"{storage.uri}/{complete.uuid}"
    assert not workspace.exists()
    assert {file.path: file.size for file in complete.files} == {name: len(body) for name, body in FILES.items()}
    assert complete.size == sum(map(len, FILES.values()))
    assert storage.manifest(complete.uuid) == complete
    assert storage.fetch(complete.uuid, tmp_path / "new" / "folders") == complete
    assert storage.fetch(complete.uuid, tmp_path / "copy") == complete
    copied = {path.relative_to(tmp_path / "copy").as_posix(): path for path in (tmp_path / "copy").rglob("*")}
    assert {name: copied[name].read_bytes() for name in FILES} == FILES
    assert not any(copied[name].stat().st_mode & 0o111 for name in FILES)
    assert "manifest.json" not in copied


def test_a_file_is_opened_by_its_path(storage: CheckpointStorage) -> None:
    complete = publish(storage)
    with storage.open(complete.uuid, "state/optimizer.json") as stream:
        assert stream.read() == FILES["state/optimizer.json"]
    for path in ("none", "state", "../x", "/etc/passwd", "state/../weights.safetensors", "a\\b", ""):
        with pytest.raises(CheckpointNotFoundError):
            storage.open(complete.uuid, path)


@pytest.mark.parametrize("name", ["..", "", "../../etc", "00000000-0000-0000-0000-000000000000", ".incoming"])
def test_what_does_not_exist_is_not_found(storage: CheckpointStorage, tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointNotFoundError):
        storage.manifest(name)
    with pytest.raises(CheckpointNotFoundError):
        storage.fetch(name, tmp_path / "copy")


def test_list_is_by_time_and_latest_by_batch(storage: CheckpointStorage) -> None:
    assert storage.list() == []
    second = publish(storage, batch=30, created="2026-01-01T00:02:00Z")
    third = publish(storage, batch=20, created="2026-01-01T00:03:00Z")
    first = publish(storage, batch=10, created="2026-01-01T00:01:00Z")
    assert storage.list() == [first, second, third]
    assert storage.latest_complete([first.uuid, third.uuid]) == third
    assert storage.latest_complete([first.uuid, str(uuid.uuid4()), second.uuid, third.uuid]) == second
    assert storage.latest_complete([]) is None


def test_parts_of_uploads_that_have_waited_for_a_week_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    monkeypatch.setattr(multipart, "abort_left", lambda folder, end, of: ends.append(end))
    CheckpointStorage("memory://checkpoints").remove_leftovers()
    assert time.time() - ends[0] == pytest.approx(7 * 24 * 3600, abs=60)


def test_delete_is_final_and_repeatable(storage: CheckpointStorage) -> None:
    complete, other = publish(storage), publish(storage)
    storage.delete(complete.uuid)
    storage.delete(complete.uuid)
    assert storage.list() == [other]
    with pytest.raises(CheckpointNotFoundError):
        storage.open(complete.uuid, "weights.safetensors")


def test_a_checkpoint_is_published_once(storage: CheckpointStorage, tmp_path: Path) -> None:
    complete = publish(storage)
    again = write(tmp_path / "again", {"weights.safetensors": b"other"})
    with pytest.raises(StorageError, match="exists already"):
        storage.publish(again, manifest(complete.uuid))
    assert (again / "weights.safetensors").read_bytes() == b"other"
    assert storage.manifest(complete.uuid) == complete


def test_files_without_a_manifest_are_no_checkpoint(storage: CheckpointStorage, uri: str) -> None:
    complete = publish(storage)
    leftover = str(uuid.uuid4())
    Stored(uri, leftover).write("weights.safetensors", b"half")
    assert storage.list() == [complete]
    assert storage.latest_complete([leftover, complete.uuid]) == complete


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', "null"])
def test_a_damaged_manifest_is_refused_and_left_out(storage: CheckpointStorage, uri: str, damage: str) -> None:
    good, bad = publish(storage, batch=1), publish(storage, batch=2)
    Stored(uri, bad.uuid).write("manifest.json", damage.encode())
    assert storage.list() == [good]
    assert storage.latest_complete([good.uuid, bad.uuid]) == good
    with pytest.raises(CheckpointCorruptError, match=r"manifest\.json"):
        storage.manifest(bad.uuid)


def test_the_manifest_of_another_checkpoint_is_refused(storage: CheckpointStorage, uri: str) -> None:
    one, other = publish(storage), publish(storage)
    Stored(uri, one.uuid).write("manifest.json", Stored(uri, other.uuid).read("manifest.json"))
    with pytest.raises(CheckpointCorruptError):
        storage.fetch(one.uuid, Path("unused"))


@pytest.mark.parametrize("path", ["../../out", "/tmp/out", "a/../../out", "a\\\\b"])
def test_a_manifest_with_a_path_that_leaves_is_refused(
    storage: CheckpointStorage, uri: str, tmp_path: Path, path: str
) -> None:
    complete = publish(storage)
    stored = Stored(uri, complete.uuid)
    stored.write("manifest.json", stored.read("manifest.json").replace(b"state/optimizer.json", path.encode()))
    with pytest.raises(CheckpointCorruptError, match=r"manifest\.json"):
        storage.fetch(complete.uuid, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(("change", "listed"), [(flip, True), (lambda content: content[:-1], False)])
def test_a_damaged_file_is_refused_before_use_and_named(
    storage: CheckpointStorage, uri: str, tmp_path: Path, change: object, listed: bool
) -> None:
    complete = publish(storage)
    stored = Stored(uri, complete.uuid)
    stored.write("weights.safetensors", change(stored.read("weights.safetensors")))  # type: ignore[operator]
    with pytest.raises(CheckpointCorruptError, match=r"weights\.safetensors"):
        storage.fetch(complete.uuid, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []
    assert bool(storage.list()) is listed


def test_a_missing_file_is_refused_and_named(storage: CheckpointStorage, uri: str, tmp_path: Path) -> None:
    good, bad = publish(storage, batch=1), publish(storage, batch=2)
    Stored(uri, bad.uuid).remove("state/optimizer.json")
    with pytest.raises(CheckpointCorruptError, match=r"state/optimizer\.json.*missing"):
        storage.fetch(bad.uuid, tmp_path / "copy")
    assert storage.latest_complete([good.uuid, bad.uuid]) == good


def test_fetching_into_a_directory_with_files_is_refused(storage: CheckpointStorage, tmp_path: Path) -> None:
    complete = publish(storage)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").write_text("keep")
    with pytest.raises(StorageError, match="not empty"):
        storage.fetch(complete.uuid, tmp_path / "copy")
    assert (tmp_path / "copy" / "mine").read_text() == "keep"


def test_links_and_reserved_names_are_refused(storage: CheckpointStorage, tmp_path: Path) -> None:
    linked = write(tmp_path / "linked")
    (linked / "link").symlink_to("/etc/passwd")
    with pytest.raises(StorageError, match="link"):
        storage.publish(linked, manifest())
    with pytest.raises(StorageError, match="reserved"):
        storage.publish(write(tmp_path / "named", {"manifest.json": b"{}"}), manifest())
    assert storage.list() == []


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a second file system")
def test_a_directory_on_another_file_system_is_copied(storage: CheckpointStorage, tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm") / f"det-native-{uuid.uuid4()}"
    try:
        _, complete = storage.publish(write(elsewhere), manifest())
        assert not elsewhere.exists()
    finally:
        subprocess.run(["rm", "-rf", elsewhere], check=True)
    storage.fetch(complete.uuid, tmp_path / "copy")


KILLED = """
import os, signal, sys, traceback
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_checkpoints import manifest, write
from det_native.storage.checkpoints import CheckpointStorage

def publish(step):
    calls = 0
    def count(event, arguments):
        nonlocal calls
        if event in ("open", "os.rename", "os.mkdir", "os.remove"):
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)

    storage = CheckpointStorage(f"{{sys.argv[1]}}/{{step}}")
    directory = write(storage.workspace())
    made = manifest()
    sys.addaudithook(count)
    storage.publish(directory, made)

# A process for each step, forked off this one, which has imported everything.
for step in range(1, 60):
    if not (writer := os.fork()):
        try:
            publish(step)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1])
    print(code)
    if code != -signal.SIGKILL:
        break
"""


@pytest.mark.slow
def test_a_writer_killed_at_any_step_leaves_no_partial_checkpoint(tmp_path: Path) -> None:
    """Kill before every file-system call that publishing makes, until it makes no more."""
    program = KILLED.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    *killed, last = map(int, done.stdout.split())
    assert killed == [-signal.SIGKILL] * len(killed)
    assert last == 0, "it makes no more calls"
    assert len(killed) > 8
    for step in range(1, len(killed) + 2):
        storage = CheckpointStorage(str(tmp_path / str(step)))
        for found in storage.list():
            storage.fetch(found.uuid, tmp_path / f"copy{step}")
    assert len(storage.list()) == 1


def test_an_unknown_scheme_says_what_to_do() -> None:
    with pytest.raises(StorageError, match="nosuch"):
        CheckpointStorage("nosuch://bucket/folder")


def test_all_is_on_the_disk_before_the_manifest_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = CheckpointStorage(str(tmp_path))
    work = write(storage.workspace())
    before: set[str] = set()
    after: list[str] = []
    synchronise = os.fsync

    def watch(descriptor: int) -> None:
        path = os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), work)
        if work.exists() and not (work / "manifest.json").exists():
            before.add(path)
        else:
            after.append(path)
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    storage.publish(work, manifest())
    assert before == {*FILES, "state/deep", "state", "."}
    assert after == ["manifest.json", ".", os.path.relpath(tmp_path, work)], "the last one brings the rename"


def test_a_manifest_that_was_made_to_fit_is_refused_by_its_hash(
    storage: CheckpointStorage, uri: str, tmp_path: Path
) -> None:
    reported = publish(storage)
    stored = Stored(uri, reported.uuid)
    assert storage.fetch(reported.uuid, tmp_path / "before", reported.sha256) == reported
    assert storage.manifest(reported.uuid).sha256 == reported.sha256
    intruded = CheckpointFile(path="objects.pkl", sha256=hashlib.sha256(b"code").hexdigest(), size=4)
    stored.write("objects.pkl", b"code")
    stored.write(
        "manifest.json", reported.model_copy(update={"files": (*reported.files, intruded)}).model_dump_json().encode()
    )
    storage.fetch(reported.uuid, tmp_path / "unguarded")  # without the hash nothing is wrong with it
    for refuse in (
        lambda: storage.fetch(reported.uuid, tmp_path / "after", reported.sha256),
        lambda: storage.check(reported),
        lambda: storage.verify(reported),
    ):
        with pytest.raises(CheckpointCorruptError, match=f"{reported.uuid}: the file 'manifest[.]json' is not the one"):
            refuse()
    assert not (tmp_path / "after").exists()


def test_a_check_sees_sizes_and_a_verification_sees_content(storage: CheckpointStorage, uri: str) -> None:
    reported = publish(storage)
    stored = Stored(uri, reported.uuid)
    storage.verify(reported)
    stored.write("weights.safetensors", b"x" * 300_000)
    storage.check(reported)
    with pytest.raises(CheckpointCorruptError, match=r"content of the file 'weights[.]safetensors'"):
        storage.verify(reported)
    stored.write("weights.safetensors", b"x")
    storage.check(reported, "state/optimizer.json")
    with pytest.raises(
        CheckpointCorruptError, match=r"'weights[.]safetensors' has 1 bytes where the manifest says 300000"
    ):
        storage.check(reported, "weights.safetensors")
    stored.remove("weights.safetensors")
    with pytest.raises(CheckpointCorruptError, match=r"'weights[.]safetensors' is missing"):
        storage.check(reported)
