"""What agents may do with a master's home, and what they may not."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_parts import at_a_socket
from master_parts import Master, publish, running_master

from det_native.errors import ArgumentError
from det_native.master.launch.ray.asks.kinds import (
    Missing,
    Piece,
    Problem,
    Publish,
    RankEnded,
    Read,
    Reply,
    Request,
    Response,
    Write,
)
from det_native.master.launch.ray.asks.master_line import MasterLine
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.manifest_file import MANIFEST

CONTENT = b"weights of a model " * 1000


def perform(server: AskServer, *asks: Any) -> list[Reply]:
    """Have asks performed, all at the same time."""

    async def all_of_them() -> list[Reply]:
        return list(await asyncio.gather(*map(server.perform, asks)))

    return asyncio.run(all_of_them())


def reply(server: AskServer, ask: Any) -> Any:
    """Have one ask performed."""
    [found] = perform(server, ask)
    return found


def packed(tmp_path: Path, content: bytes) -> tuple[str, bytes]:
    """Return the path of a blob in a store, and its file."""
    sha256 = hashlib.sha256(content).hexdigest()
    store = BlobStore(str(tmp_path / "elsewhere"))
    store.put(sha256, content)
    key = f"{sha256[:2]}/{sha256}"
    return key, (tmp_path / "elsewhere" / key).read_bytes()


class TestPaths:
    """Nothing outside of the shared folders is read or written."""

    @pytest.mark.parametrize("path", ["../token", "/etc/passwd", "r1/../../token", "r1//a", "", "r1/\0", "link/token"])
    def test_a_path_that_leaves_its_folder_is_refused(self, server: AskServer, home: Path, path: str) -> None:
        (home / "token").write_text("secret")
        (home / "runs").mkdir()
        (home / "runs" / "link").symlink_to(home)
        for ask in (Read("runs", path, 0, 10), Write("runs", path, 0, b"x"), Missing("runs", [path])):
            assert isinstance(reply(server, ask), Problem)
        assert (home / "token").read_text() == "secret"

    def test_there_are_no_other_folders(self, server: AskServer, home: Path) -> None:
        (home / "secrets").mkdir()
        (home / "secrets" / "key").write_text("secret")
        assert isinstance(reply(server, Read("secrets", "key", 0, 10)), Problem)  # type: ignore[arg-type]
        (home / "data" / "sets").mkdir(parents=True)
        (home / "data" / "sets" / "one.json").write_text("{}")
        assert isinstance(reply(server, Read("data", "../sets/one.json", 0, 10)), Problem)

    def test_a_link_at_the_end_of_a_path_is_not_written_through(self, server: AskServer, home: Path) -> None:
        (home / "runs" / "r1").mkdir(parents=True)
        (home / "runs" / "r1" / "target").write_text("as it was")
        (home / "runs" / "r1" / "link").symlink_to("target")
        assert isinstance(reply(server, Write("runs", "r1/link", 0, b"x")), Problem)
        assert (home / "runs" / "r1" / "target").read_text() == "as it was"

    def test_data_are_only_read(self, server: AskServer) -> None:
        assert isinstance(reply(server, Write("data", f"ab/{'ab' * 32}", 0, b"x")), Problem)

    @pytest.mark.parametrize("path", ["ab/abc", f"xx/{'ab' * 32}", f"ab/{'ab' * 32}.x/y", f"ab/cd/{'ab' * 32}"])
    def test_only_hashes_are_blobs(self, server: AskServer, path: str) -> None:
        assert isinstance(reply(server, Write("blobs", path, 0, b"x")), Problem)
        assert isinstance(reply(server, Publish("blobs", path)), Problem)

    def test_what_only_the_bridge_does_is_refused(self, server: AskServer) -> None:
        assert isinstance(reply(server, RankEnded("r1", 0, 0)), Problem)


class TestFilesOfRuns:
    """Files that grow, piece by piece."""

    def test_a_piece_is_written_where_the_file_ends_and_a_repeat_changes_nothing(
        self, server: AskServer, home: Path
    ) -> None:
        (home / "runs" / "r1").mkdir(parents=True)
        assert reply(server, Write("runs", "r1/rank-1/output.log", 0, b"first ")) == 6
        assert reply(server, Write("runs", "r1/rank-1/output.log", 9, b"too far")) == 6
        assert reply(server, Write("runs", "r1/rank-1/output.log", 6, b"second")) == 12
        assert reply(server, Write("runs", "r1/rank-1/output.log", 0, b"first ")) == 12
        assert (home / "runs/r1/rank-1/output.log").read_bytes() == b"first second"

    def test_a_whole_file_takes_the_place_of_a_longer_one(self, server: AskServer, home: Path) -> None:
        (home / "tensorboard" / "1" / "2").mkdir(parents=True)
        reply(server, Write("tensorboard", "1/2/checkpoint", 0, b"a long text of an earlier run"))
        assert reply(server, Write("tensorboard", "1/2/checkpoint", 0, b"short", last=True)) == 5
        assert (home / "tensorboard/1/2/checkpoint").read_bytes() == b"short"

    def test_what_comes_late_makes_no_folder_of_what_was_deleted(self, server: AskServer, home: Path) -> None:
        late = [Write("runs", "r1/output.log", 0, b"x"), Write("tensorboard", "1/2/train/events", 0, b"x")]
        for problem in perform(server, *late):
            assert isinstance(problem, Problem)
            assert "experiment was deleted" in problem.text
        assert [path for path in home.rglob("*") if path.name in ("r1", "1")] == []

    def test_pieces_are_read_with_the_size_of_the_whole(self, server: AskServer, home: Path) -> None:
        (home / "runs" / "r1").mkdir(parents=True)
        (home / "runs" / "r1" / "note").write_bytes(b"0123456789")
        assert reply(server, Read("runs", "r1/note", 4, 3)) == Piece(b"456", 10)
        assert reply(server, Read("runs", "r1/none", 0, 3)) == Piece(None)
        assert reply(server, Read("runs", "r1", 0, 3)) == Piece(None)
        assert reply(server, Missing("runs", ["r1/note", "r1/none"])) == ["r1/none"]


class TestBlobs:
    """Blobs appear whole and verified, or not at all."""

    def test_a_blob_arrives_in_pieces_and_is_there_once_published(
        self, server: AskServer, home: Path, tmp_path: Path
    ) -> None:
        key, content = packed(tmp_path, CONTENT)
        sha256, store = key[3:], BlobStore(str(home / "blobs"))
        assert reply(server, Write("blobs", f"{key}.a1", 0, content[:50])) == 50
        assert sha256 not in store
        assert reply(server, Missing("blobs", [key])) == [key]
        assert isinstance(reply(server, Publish("blobs", f"{key}.a1")), Problem)
        assert sha256 not in store
        assert reply(server, Write("blobs", f"{key}.a1", 0, content)) == len(content)
        assert reply(server, Publish("blobs", f"{key}.a1")) is None
        assert reply(server, Publish("blobs", f"{key}.a1")) is None, "a repeat changes nothing"
        assert store.read(sha256) == CONTENT
        assert reply(server, Missing("blobs", [key])) == []

    def test_content_with_another_hash_is_refused_and_removed(
        self, server: AskServer, home: Path, tmp_path: Path
    ) -> None:
        key, _ = packed(tmp_path, CONTENT)
        _, other = packed(tmp_path, b"something else")
        reply(server, Write("blobs", key, 0, other))
        assert isinstance(reply(server, Publish("blobs", key)), Problem)
        assert not [path for path in (home / "blobs").rglob("*") if path.is_file()]

    def test_two_agents_bring_the_same_blob_at_once(self, server: AskServer, home: Path, tmp_path: Path) -> None:
        key, content = packed(tmp_path, CONTENT)
        senders = [f"{key}.{number}" for number in range(8)]
        perform(server, *(Write("blobs", sender, 0, content) for sender in senders))
        assert perform(server, *(Publish("blobs", sender) for sender in senders * 3)) == [None] * 24
        assert BlobStore(str(home / "blobs")).read(key[3:]) == CONTENT


class TestCheckpoints:
    """Checkpoints appear whole and verified, or not at all."""

    @pytest.fixture
    def manifest(self, tmp_path: Path, home: Path) -> CheckpointManifest:
        """Give a checkpoint that is published on another machine."""
        from agent_parts import trial_job

        job = trial_job(home, "r1", "say").model_copy(update={"checkpoints": str(tmp_path / "elsewhere")})
        return CheckpointManifest.model_validate(publish(job, 8)[1]["manifest"])

    def send(self, server: AskServer, tmp_path: Path, manifest: CheckpointManifest) -> None:
        """Send all files of the checkpoint."""
        folder = tmp_path / "elsewhere" / manifest.uuid
        for path in folder.iterdir():
            reply(server, Write("checkpoints", f"{manifest.uuid}/{path.name}", 0, path.read_bytes(), last=True))

    def test_a_checkpoint_is_there_once_published(
        self, server: AskServer, home: Path, tmp_path: Path, manifest: CheckpointManifest
    ) -> None:
        storage = CheckpointStorage(str(home / "checkpoints"))
        self.send(server, tmp_path, manifest)
        assert storage.list() == []
        assert reply(server, Missing("checkpoints", [manifest.uuid])) == [manifest.uuid]
        assert perform(server, *[Publish("checkpoints", manifest.uuid)] * 6) == [None] * 6
        assert storage.list() == [manifest]
        storage.verify(manifest)
        assert reply(server, Missing("checkpoints", [manifest.uuid])) == []
        self.send(server, tmp_path, manifest)
        assert reply(server, Publish("checkpoints", manifest.uuid)) is None, "a repeat changes nothing"

    @pytest.mark.parametrize("name", ["weights", MANIFEST])
    def test_one_whose_files_have_not_all_arrived_is_refused(
        self, server: AskServer, home: Path, tmp_path: Path, manifest: CheckpointManifest, name: str
    ) -> None:
        self.send(server, tmp_path, manifest)
        (home / "checkpoints" / ".incoming" / manifest.uuid / name).unlink()
        assert isinstance(reply(server, Publish("checkpoints", manifest.uuid)), Problem)
        assert CheckpointStorage(str(home / "checkpoints")).list() == []

    def test_a_damaged_one_and_one_with_a_stranger_are_refused(
        self, server: AskServer, home: Path, tmp_path: Path, manifest: CheckpointManifest
    ) -> None:
        for name in ("weights", "stranger"):
            self.send(server, tmp_path, manifest)
            reply(server, Write("checkpoints", f"{manifest.uuid}/{name}", 0, b"W"))
            refused = reply(server, Publish("checkpoints", manifest.uuid))
            assert (refused.name, name in refused.text) == ("CheckpointCorruptError", True)
        assert CheckpointStorage(str(home / "checkpoints")).list() == []
        self.send(server, tmp_path, manifest)
        assert reply(server, Publish("checkpoints", manifest.uuid)) is None


class TestRequests:
    """Requests of workers reach the master as they are."""

    @pytest.fixture
    def master(self, home: Path) -> Iterator[Master]:
        """Give a running master."""
        with running_master(home) as running:
            yield running

    def test_the_master_answers_by_its_own_rules(self, master: Master, home: Path) -> None:
        master.create()
        [job] = master.world.wait_for_jobs(1)
        path = f"/api/v1/runs/{job.run_id}/reports"
        body = b'{"reports":[{"type":"started","seq":1,"batch":0}]}'
        with at_a_socket(master.app, home) as url, closing(AskServer(home, url)) as server:
            headers = {"Authorization": f"Bearer {job.token}", "Content-Type": "application/json", "Host": "evil"}
            requests = [Request("POST", path, headers, body)] * 6
            answers = perform(server, *requests)
            assert all(isinstance(answer, Response) and answer.status == 200 for answer in answers)
            for _ in range(3):
                assert reply(server, requests[0]).status == 200
            stranger = reply(server, Request("POST", path, {**headers, "Authorization": "Bearer x"}, body))
            assert stranger.status == 401
            assert b"token" in stranger.body
            other = reply(server, Request("GET", "/api/v1/experiments", headers))
            assert other.status == 401, "the token of a run opens its own routes only"
            assert reply(server, Request("GET", "@elsewhere/", headers)).status == 400
        with closing(AskServer(home, url)) as server:
            away = reply(server, requests[0])
            assert away.status == 503
            assert b"does not answer" in away.body

    def test_tokens_are_told_to_nobody_in_the_clear(self) -> None:
        with pytest.raises(ArgumentError, match="socket"):
            MasterLine("http://127.0.0.1:1")
