"""Test `bespeak keys`: files are readable by their owner only and never overwritten by accident."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from joserfc.jwk import OKPKey
from tests.app.cli.invoking import invoking

from bespeak.app.cli.keys import keys
from bespeak.documents.projections.manifest_signature import sign_manifest, verify_manifest
from bespeak.errors import ConfigError
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.jws import generate_key, key_id, parse_key, private_text, public_jwk
from bespeak.state.identity.key_files import read_history
from bespeak.state.identity.signed_document import SignedDocument, write_signed

run = invoking(keys)


def test_a_new_key_is_written_for_its_owner_only(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    result = run("new", "--out", out, code=0)
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


def test_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    result = run("new", "--out", tmp_path / "missing" / "key.pem")
    assert isinstance(result.exception, ConfigError)
    assert "missing" in str(result.exception)


def test_show_prints_the_public_key(tmp_path: Path) -> None:
    out = tmp_path / "key.pem"
    run("new", "--out", out)
    shown = run("show", out).output
    public = json.loads(shown.split("public key")[1])
    assert "d" not in public
    jwk_file = tmp_path / "public.jwk"
    jwk_file.write_text(json.dumps(public))
    assert run("show", jwk_file).output == shown


@pytest.mark.parametrize("content", [b"no key", b"\xff\xfe", b"{", b'{"a":' + b"[" * 100_000])
def test_show_reports_invalid_files(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    result = run("show", file)
    assert isinstance(result.exception, ConfigError)
    assert str(file) in str(result.exception)


def test_show_does_not_block_on_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = run("show", tmp_path / "pipe")
    assert isinstance(result.exception, ConfigError)
    assert "not a regular file" in str(result.exception)


def test_force_replaces_regular_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    before = {file.name: file.lstat().st_mode for file in tmp_path.iterdir()}
    for name in ("pipe", "folder", "link"):
        result = run("new", "--out", tmp_path / name, "--force")
        assert isinstance(result.exception, ConfigError)
        assert "not a regular file" in str(result.exception)
    assert {file.name: file.lstat().st_mode for file in tmp_path.iterdir()} == before
    assert (tmp_path / "precious").read_text() == "precious"


def test_force_leaves_no_temporary_files(tmp_path: Path) -> None:
    assert run("new", "--out", tmp_path / "key.pem", "--force").exit_code == 0
    assert run("new", "--out", tmp_path / "key.pem", "--force").exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["key.pem"]


def made(folder: Path) -> tuple[Path, OKPKey]:
    out = folder / "key.pem"
    assert run("new", "--out", out).exit_code == 0
    return out, read(out)


def read(path: Path) -> OKPKey:
    key = parse_key(path.read_text())
    assert isinstance(key, OKPKey)
    return key


def listed(folder: Path) -> list[str]:
    return [entry["kid"] for entry in json.loads((folder / "key.pem.keys.json").read_text())["keys"]]


def test_rotate_creates_a_key_and_keeps_the_old_public_keys(tmp_path: Path) -> None:
    out, key = made(tmp_path)
    ids = [key_id(key)]
    for _ in range(3):
        result = run("rotate", out, code=0)
        assert read(out).is_private
        ids.insert(0, key_id(read(out)))
        assert ids[0] in result.output
    assert len(set(ids)) == 4
    assert listed(tmp_path) == ids
    assert '"d"' not in (tmp_path / "key.pem.keys.json").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["key.pem", "key.pem.keys.json"]


def test_signatures_of_the_old_key_are_verified_with_the_set(tmp_path: Path) -> None:
    out, key = made(tmp_path)
    manifest = {"agtp_version": "1.0"}
    signed = {**manifest, "manifest_signature": sign_manifest(manifest, key)}
    run("rotate", out)
    assert not verify_manifest(signed, read(out)).trusted
    earlier = read_history(out, read(out))
    assert isinstance(earlier, list)
    assert [verify_manifest(signed, one.key).trusted for one in earlier] == [False, True]
    assert "replaced at  20" in run("show", out).output


def test_set_that_the_key_did_not_sign_is_not_used(tmp_path: Path) -> None:
    out, _ = made(tmp_path)
    run("rotate", out)
    file = tmp_path / "key.pem.keys.json"
    document = json.loads(file.read_text())
    document["keys"].append(public_jwk(generate_key()))
    file.write_text(json.dumps(document))
    for command in ("rotate", "show"):
        result = run(command, out)
        assert isinstance(result.exception, ConfigError)
        assert "is not signed by the key in key.pem" in str(result.exception)


def test_rotate_keeps_the_permissions_of_the_file(tmp_path: Path) -> None:
    out, _ = made(tmp_path)
    out.chmod(0o640)
    assert run("rotate", out).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o640


def test_show_prints_every_key_of_a_file_and_of_a_set(tmp_path: Path) -> None:
    out, key = made(tmp_path)
    run("rotate", out)
    for path in (out, tmp_path / "key.pem.keys.json"):
        shown = run("show", path).output
        assert shown.index(key_id(read(out))) < shown.index(key_id(key))
        assert shown.count("public key") == 2


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"keys": [7]}', '{"keys": [{"kty": "oct", "k": "x"}]}'])
def test_unreadable_key_set_is_not_overwritten(tmp_path: Path, text: str) -> None:
    out, key = made(tmp_path)
    (tmp_path / "key.pem.keys.json").write_text(text)
    for command in ("rotate", "show"):
        result = run(command, out)
        assert isinstance(result.exception, ConfigError)
        assert "key.pem.keys.json" in str(result.exception)
    assert (tmp_path / "key.pem.keys.json").read_text() == text
    assert key_id(read(out)) == key_id(key)


def test_rotate_needs_a_private_key_in_a_regular_file(tmp_path: Path) -> None:
    out, key = made(tmp_path)
    (tmp_path / "public").write_text(json.dumps(public_jwk(key)))
    (tmp_path / "text").write_text("no key")
    (tmp_path / "link").symlink_to(out)
    for name in ("public", "text", "link", "missing"):
        result = run("rotate", tmp_path / name)
        assert isinstance(result.exception, ConfigError)
        assert name in str(result.exception)
    assert key_id(read(out)) == key_id(key)


def test_a_failure_between_the_two_files_loses_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, key = made(tmp_path)
    replace = Path.replace

    def fail_at_the_key(self: Path, target: Path) -> Path:
        if target == out:
            raise OSError("no space left")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_at_the_key)
    result = run("rotate", out)
    assert isinstance(result.exception, ConfigError)
    assert "the old key is still in use" in str(result.exception)
    assert key_id(read(out)) == key_id(key)
    monkeypatch.undo()
    assert run("rotate", out).exit_code == 0
    assert listed(tmp_path)[:2] == [key_id(read(out)), key_id(key)]
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_verify_shows_what_was_signed_and_refuses_what_was_not(tmp_path: Path) -> None:
    key, token = tmp_path / "key.pem", tmp_path / "token"
    made = generate_key()
    key.write_text(private_text(made))
    signer = Signer(made)
    document = SignedDocument({"sum": 3}, "agent", "work.example", "2026-11-16T00:00:00Z")
    token.write_text(write_signed(document, signer.private_key, signer.key_id, "EdDSA"))
    shown = CliRunner().invoke(keys, ["verify", str(token), "--key", str(key)])
    assert shown.exit_code == 0
    assert 'signed at 2026-11-16T00:00:00Z for agent by work.example\npayload      {"sum":3}' in shown.stdout
    refused = CliRunner().invoke(keys, ["verify", "-", "--key", str(key)], input="a.b.c")
    assert refused.exit_code == 1
    assert "the signature is not valid" in refused.stderr + str(refused.exception)
