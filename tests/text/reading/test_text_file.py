"""Files of a deployment: read as text, or reported."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_stream, read_text
from bespeak.text.source.tree import Location


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(b"\xef\xbb\xbf" + b"k = 1\n")
    assert read_text(file) == "k = 1\n"


@pytest.mark.requirement("AGIS-14-1")
@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = 1\n" * 200_000])
def test_binary_or_too_long_file_is_a_finding(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(content)
    finding = read_text(file)
    assert isinstance(finding, Diagnostic)
    assert finding.rule == "D101"


def test_path_that_is_not_a_file_is_a_finding(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "none.toml", tmp_path, tmp_path / "pipe.toml", Path("a\0b.toml"), Path("/dev/zero")):
        finding = read_text(path)
        assert isinstance(finding, Diagnostic), path
        assert finding.rule == "D101"


def test_invalid_utf_8_is_reported_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "menu.agis"
    file.write_bytes("agis: é\nx: ".encode() + b"\xff\n")
    finding = read_text(file)
    assert isinstance(finding, Diagnostic)
    assert finding.location == Location(str(file), 2, 4)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "menu.agis"
    with file.open("wb") as opened:
        opened.truncate(50 << 20)
    finding = read_text(file)
    assert isinstance(finding, Diagnostic)
    assert finding.location == Location(str(file), 1, 1)
    assert "52428800" in finding.message


def test_a_stream_is_read_whole_or_not_at_all() -> None:
    most = "é" * 5
    assert read_stream(io.BytesIO(most.encode()), Path("-"), 10) == most
    for data in (f"{most}é".encode(), b"a" * 11, b"a\xff"):
        finding = read_stream(io.BytesIO(data), Path("-"), 10)
        assert isinstance(finding, Diagnostic)
        assert finding.rule == "D101"
