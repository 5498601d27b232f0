"""Which paths reach the master: pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from det_jupyter.routes import is_file, parameters, resolve
from hypothesis import example, given
from hypothesis import strategies as st

SHA = "ab" * 32
UUID = "0199f3a2-1111-4222-8333-944444444444"


@pytest.mark.parametrize(
    "path",
    [
        *("health", "master", "events", "experiments", "experiments/7", "experiments/7/trials"),
        *("experiments/7/checkpoints", "experiments/7/curves", "trials/3", "trials/3/metrics", "trials/3/series"),
        *("trials/3/media", "trials/3/media/12/content", "trials/3/artifacts", "trials/3/artifacts/content"),
        *(
            "trials/3/curves",
            "trials/3/clock",
            "experiments/7/clocks",
            "trials/3/logs",
            "trials/3/checkpoints",
            f"checkpoints/{UUID}",
        ),
        *(f"checkpoints/{UUID}/files/manifest.json", f"checkpoints/{UUID}/files/optimizer/state.pt"),
    ],
)
def test_what_a_user_interface_reads_is_passed_on(path: str) -> None:
    assert resolve("GET", path) == f"/api/v1/{path}"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("space", "models", "models/digits", "models/digits/versions/2", "messages")),
        *(("GET", path) for path in ("trial-summaries", f"bundles/{SHA}", f"blobs/{SHA}", "experiments/7/deletion")),
        ("GET", "configuration-schema"),
        *((method, "experiments/7") for method in ("PATCH", "DELETE")),
        *((method, "models/digits/versions/2") for method in ("PATCH", "DELETE")),
        *(("POST", f"experiments/7/{verb}") for verb in ("fork", "continue")),
        *(("POST", path) for path in ("models", "models/digits/versions", f"checkpoints/{UUID}/verify")),
        ("PUT", "experiments/7/gc-policy"),
        *(("GET", f"experiment-{what}") for what in ("list", "rows", "groups", "names", "views")),
        *((method, "experiment-views") for method in ("PUT", "DELETE")),
        ("GET", "queue"),
        *(("POST", path) for path in ("schedules/3/pause", "schedules/3/resume", "space/clean")),
        ("DELETE", "schedules/3"),
    ],
)
def test_what_the_workspace_asks_for_is_passed_on(method: str, path: str) -> None:
    assert resolve(method, path) == f"/api/v1/{path}"


@pytest.mark.parametrize("action", ["pause", "resume", "stop", "kill"])
def test_what_a_user_interface_does_is_passed_on_as_post_only(action: str) -> None:
    assert resolve("POST", f"experiments/7/{action}") == f"/api/v1/experiments/7/{action}"
    assert resolve("POST", f"trials/7/{action}") is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("", "runs/01/reports", "blobs/ab", "bundles/ab", "openapi.json", "MASTER")),
        *(("GET", path) for path in ("master/shutdown", "experiments/", "experiments/x", "experiments/7/trials/3")),
        *(("GET", f"trials/3/{path}") for path in ("media/x/content", "media/1/other", "logs/content")),
        *(("GET", path) for path in ("../v1/runs", "experiments/../runs", "checkpoints/..", "events?after=1")),
        *(("GET", f"checkpoints/{UUID}/files/{path}") for path in ("", "..", "a/../b", "a//b", "a\\b", "a\0", "./a")),
        *(("POST", path) for path in ("master/shutdown", "experiments", "blobs", "bundles", "runs/01/reports")),
        *((method, "experiments/7") for method in ("PUT", "HEAD")),
        *((method, "trials/7") for method in ("PUT", "DELETE", "PATCH")),
        *(("GET", path) for path in ("settings/notify", f"models/{'x' * 1001}", "models/../runs", "blobs/AB")),
        *(
            ("DELETE", path)
            for path in ("experiment-list", "data/set", "schedules/x", "settings/notify", "models", "experiments/7/x")
        ),
    ],
)
def test_everything_else_stays_here(method: str, path: str) -> None:
    assert resolve(method, path) is None


@given(st.text(), st.sampled_from(["", "experiments/1/", "trials/", f"checkpoints/{UUID}/files/"]))
@example("%2e%2e/%2e%2e/runs", f"checkpoints/{UUID}/files/")
@example("..;/x", f"checkpoints/{UUID}/files/")
def test_nothing_leaves_its_folder_and_the_master_reads_what_was_checked(text: str, prefix: str) -> None:
    target = resolve("GET", prefix + text)
    if target is None:
        return
    assert target.isascii()
    assert "?" not in target
    assert "#" not in target
    decoded = unquote(target)
    assert decoded == f"/api/v1/{prefix}{text}"
    assert ".." not in PurePosixPath(decoded).parts


def test_a_checkpoints_file_is_told_from_the_rest() -> None:
    assert is_file(f"checkpoints/{UUID}/files/page.html")
    assert not is_file(f"checkpoints/{UUID}")
    assert not is_file("experiments/7/files/x")


def test_jupyters_own_parameters_are_not_sent_on() -> None:
    query = "limit=5&token=secret&name=a%26b&empty=&_xsrf=x&no_track_activity=1&kind="
    assert parameters(query) == [("limit", "5"), ("name", "a&b"), ("empty", ""), ("kind", "")]
