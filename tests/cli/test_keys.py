"""`bespeak keys`: files only their owner can read, and nothing overwritten by accident."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from joserfc.jwk import OKPKey

from bespeak.cli.keys import keys
from bespeak.documents.key_text import key_id, parse_key
from bespeak.errors import ConfigError


def run(*arguments: object) -> Result:
    return CliRunner().invoke(keys, [str(argument) for argument in arguments])


def test_a_new_key_is_written_for_its_owner_only(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    result = run("new", "--out", out)
    assert result.exit_code == 0, result.output
    key = parse_key(out.read_text())
    assert isinstance(key, OKPKey)
    assert key.is_private
    assert out.stat().st_mode & 0o777 == 0o600
    assert key_id(key) in result.output
    assert "PRIVATE" not in result.output


def test_without_a_file_the_private_key_is_printed() -> None:
    result = run("new")
    assert result.output.startswith("-----BEGIN PRIVATE KEY-----\n")
    assert "key id " in result.output


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    out.write_text("precious")
    result = run("new", "--out", out)
    assert isinstance(result.exception, ConfigError)
    assert "--force" in str(result.exception)
    assert out.read_text() == "precious"


def test_force_replaces_the_file_and_its_permissions(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    out.write_text("old")
    out.chmod(0o644)
    assert run("new", "--out", out, "--force").exit_code == 0
    assert "BEGIN PRIVATE KEY" in out.read_text()
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    result = run("new", "--out", tmp_path / "missing" / "key.pem")
    assert isinstance(result.exception, ConfigError)
    assert "missing" in str(result.exception)


def test_show_prints_the_public_half_of_a_key_it_can_read_back(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    run("new", "--out", out)
    shown = run("show", out).output
    public = json.loads(shown.split("public key")[1])
    assert "d" not in public
    jwk_file = tmp_path / "public.jwk"
    jwk_file.write_text(json.dumps(public))
    assert run("show", jwk_file).output == shown


@pytest.mark.parametrize("content", [b"no key", b"\xff\xfe", b"{", b'{"a":' + b"[" * 100_000])
def test_show_says_what_is_wrong_with_a_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    result = run("show", file)
    assert isinstance(result.exception, ConfigError)
    assert str(file) in str(result.exception)


def test_show_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = run("show", tmp_path / "pipe")
    assert isinstance(result.exception, ConfigError)
    assert "not an ordinary file" in str(result.exception)


def test_force_replaces_ordinary_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    before = {file.name: file.lstat().st_mode for file in tmp_path.iterdir()}
    for name in ("pipe", "folder", "link"):
        result = run("new", "--out", tmp_path / name, "--force")
        assert isinstance(result.exception, ConfigError)
        assert "not an ordinary file" in str(result.exception)
    assert {file.name: file.lstat().st_mode for file in tmp_path.iterdir()} == before
    assert (tmp_path / "precious").read_text() == "precious"


def test_force_leaves_nothing_but_the_key(tmp_path: Path) -> None:
    assert run("new", "--out", tmp_path / "key.pem", "--force").exit_code == 0
    assert run("new", "--out", tmp_path / "key.pem", "--force").exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["key.pem"]
