"""The name under which a browser saves a file, whatever its path is."""

from __future__ import annotations

from email.message import Message

import pytest

from det_native.schema.downloads import attachment


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("plots/loss.csv", "loss.csv"),
        ("weights", "weights"),
        ('a b;c="d".txt', 'a b;c="d".txt'),
        ("été/Größe 模型.pt", "Größe 模型.pt"),
        ("x%2e%2e%2fy", "x%2e%2e%2fy"),
        ("it's.txt", "it's.txt"),
        ("a\r\nSet-Cookie: x=y", "a__Set-Cookie: x=y"),
        ("folder\\evil.exe", "evil.exe"),
        (".hidden", "hidden"),
        ("report\u202etxt.exe", "report_txt.exe"),
        ("bytes\udcff.bin", "bytes\ufffd.bin"),
        ("n" * 500 + ".tar", "n" * 196 + ".tar"),
    ],
)
def test_a_file_is_saved_under_the_last_part_of_its_path(path: str, name: str) -> None:
    value = attachment(path)
    assert value.isascii()
    assert value.isprintable()
    read = Message()
    read["Content-Disposition"] = value
    assert read.get_content_disposition() == "attachment"
    assert len(value.split('"')) == 3, "the quoted name holds no quote"
    encoded = value.rpartition("filename*=")[2]
    read = Message()
    read["Content-Disposition"] = f"attachment; filename*={encoded}"
    assert read.get_filename() == name


@pytest.mark.parametrize("path", ["", "..", "a/..", "/", " "])
def test_what_is_no_name_is_not_given(path: str) -> None:
    assert attachment(path) == "attachment"
