"""`bespeak semantic confirm`: a confirmation is an act of the operator for one content, listed and revocable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.meaning import ALIGNMENT, FOLDER

from bespeak.app.cli.main import CommandFailedError, bespeak
from bespeak.state.identity.key_text import generate_key, public_jwk


def run(*arguments: str) -> Result:
    return CliRunner().invoke(bespeak, ["semantic", *arguments])


@pytest.fixture
def place(tmp_path: Path) -> str:
    place = str(tmp_path / "clinic.db")
    for name in ("clinical.ttl", "radiology.ttl", "radiology-clinical.json"):
        done = run("register", str(FOLDER / name), "--store", place, "--by", "ada")
        assert done.exit_code == 0, done.output
    return place


def listed(place: str) -> str:
    found = json.loads(run("list", "--kind", "alignment", "--store", place, "--json").output)
    return str(found[0]["confirmed_by"])


def test_confirmation_is_listed_shown_as_a_case_and_revoked(place: str) -> None:
    done = run("confirm", ALIGNMENT, "--store", place, "--by", "ada", "--reason", "reviewed")
    assert done.exit_code == 0, done.output
    assert "#report-summary equivalent" in done.output
    assert listed(place) == "operator:ada"
    assert "confirmed by operator:ada" in run("list", "--store", place).output
    cases = CliRunner().invoke(bespeak, ["cases", "list", "--state", "accepted", "--store", place])
    assert f"alignment {ALIGNMENT}" in cases.output
    revoked = run("confirm", ALIGNMENT, "--store", place, "--by", "bob", "--revoke", "--json")
    assert json.loads(revoked.output)["state"] == "revoked"
    assert listed(place) == ""
    again = run("confirm", ALIGNMENT, "--store", place, "--by", "bob", "--revoke")
    assert isinstance(again.exception, CommandFailedError)
    assert "is not confirmed" in str(again.exception)


def test_artifact_that_is_not_registered_cannot_be_confirmed(place: str) -> None:
    for arguments in (["https://z.example/a"], [ALIGNMENT, "--version", "9"]):
        refused = run("confirm", *arguments, "--store", place, "--by", "ada")
        assert isinstance(refused.exception, CommandFailedError)
        assert "is not a registered alignment" in str(refused.exception)


def test_unsigned_artifact_is_neither_registered_nor_confirmed_where_keys_are_trusted(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bespeak.toml").write_text(f'[semantic]\ntrusted_keys = ["{public_jwk(generate_key())["x"]}"]\n')
    monkeypatch.chdir(tmp_path)
    refused = run("confirm", ALIGNMENT, "--store", place, "--by", "ada")
    assert isinstance(refused.exception, CommandFailedError)
    assert "`trusted_keys` of [semantic]" in str(refused.exception)
    artifact = json.loads((FOLDER / "radiology-clinical.json").read_text()) | {"id": "https://a.example/0"}
    (tmp_path / "other.json").write_text(json.dumps(artifact))
    unsigned = run("register", "other.json", "--store", place, "--by", "ada")
    assert unsigned.exit_code == 1
    assert "the artifact is not signed, and `trusted_keys`" in unsigned.output
    (tmp_path / "stranger.json").write_text(json.dumps(public_jwk(generate_key())))
    stranger = run("register", "other.json", "--store", place, "--by", "ada", "--trusted", "stranger.json")
    assert "is not in `trusted_keys`" in str(stranger.exception)
