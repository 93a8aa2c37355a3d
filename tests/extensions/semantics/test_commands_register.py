"""`bespeak semantic register`, `sign`, `list` and `show` on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.extensions.semantics.ontology.figures import FIGURE_3
from tests.meaning import ALIGNMENT, FOLDER

from bespeak.app.cli.main import bespeak
from bespeak.errors import ConfigError
from bespeak.state.identity.jws import generate_key, private_text, public_jwk
from bespeak.terminal import CommandFailedError

CS = "https://ex.org/onto/cs"
HEADER = f'@prefix owl: <http://www.w3.org/2002/07/owl#> . <{CS}> a owl:Ontology ; owl:versionInfo "VERSION" .\n'


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(bespeak, ["semantic", *args])


def document(version: str, more: str = "") -> str:
    path = Path(f"cs-{version}.ttl")
    path.write_text(HEADER.replace("VERSION", version) + FIGURE_3 + more)
    return str(path)


def refusal(result: Result) -> str:
    assert isinstance(result.exception, CommandFailedError | ConfigError), (result.output, result.exception)
    return str(result.exception)


def test_ontology_is_registered_listed_and_shown(run: Run) -> None:
    first = run("register", document("1.0"), "--store", "s.db", "--by", "alice")
    assert first.exit_code == 0, first.exception
    assert first.output.startswith(f"registered   {CS} 1.0\nsha256       ")
    assert run("register", document("1.0"), "--store", "s.db").exit_code == 0
    second = run("register", document("1.1"), "--store", "s.db", "--json")
    assert json.loads(second.output)["supersedes"] == "1.0"
    listed = json.loads(run("list", "--store", "s.db", "--json").output)
    assert [(row["id"], row["version"], row["source"]) for row in listed] == [
        (CS, "1.0", "cs-1.0.ttl"),
        (CS, "1.1", "cs-1.1.ttl"),
    ]
    assert f"ontology   {CS} 1.0" in run("list", "--store", "s.db").output
    shown = json.loads(run("show", CS, "--store", "s.db", "--version", "1.0", "--json").output)
    assert shown["actor"] == "operator:alice"
    assert "version      1.1" in run("show", CS, "--store", "s.db").output
    assert "refs         -" in run("show", CS, "--store", "s.db").output
    assert '<https://ex.org/ioa/semantic#abbr> "LLM" .\n' in run("show", CS, "--store", "s.db", "--content").output


def test_refusals_name_what_to_do_and_register_nothing(run: Run) -> None:
    run("register", document("1.5"), "--store", "s.db")
    other = run("register", document("1.5", "cs:More a ioa:Concept ."), "--store", "s.db")
    assert refusal(other) == f"{CS} 1.5 is registered with other content; give the change a new version"
    older = run("register", document("1.4"), "--store", "s.db")
    assert refusal(older) == f"{CS}: version '1.4' is older than '1.5'; register a newer version"
    broken = run("register", document("2.0", "cs:x"), "--store", "s.db")
    assert refusal(broken) == "cs-2.0.ttl cannot be used as it is; see the findings"
    assert "I102" in broken.output
    assert refusal(run("register", "missing.ttl", "--store", "s.db")).startswith("missing.ttl: the file cannot be read")
    assert refusal(run("show", "x:unknown", "--store", "s.db")) == "x:unknown is not registered"
    assert len(json.loads(run("list", "--store", "s.db", "--json").output)) == 1


@pytest.mark.requirement("IOA-13-5")
def test_signature_is_verified_with_trusted_keys_and_then_required(run: Run) -> None:
    key, stranger = generate_key(), generate_key()
    Path("key.pem").write_text(private_text(key))
    Path("trusted.json").write_text(json.dumps(public_jwk(key)))
    Path("stranger.json").write_text(json.dumps(public_jwk(stranger)))
    token = run("sign", document("1.0"), "--key", "key.pem").output
    Path("cs.jws").write_text(token)
    with_token = ("--store", "s.db", "--signature", "cs.jws", "--trusted")
    assert refusal(run("register", document("1.0"), *with_token, "stranger.json")).endswith("which is not trusted")
    assert "the signature is for the version '1.0'" in refusal(
        run("register", document("1.1"), *with_token, "trusted.json")
    )
    changed = run("register", document("1.0", "cs:More a ioa:Concept ."), *with_token, "trusted.json")
    assert "the signature is for the sha256" in refusal(changed)
    signed = run("register", document("1.0"), *with_token, "trusted.json", "--json")
    assert json.loads(signed.output)["signature"] == token.strip()
    assert refusal(run("register", document("1.1"), "--store", "s.db")).endswith("sign this version too")
    assert run("register", document("1.1"), "--store", "s.db", "--signature", "cs.jws").exit_code == 2
    assert "holds a public key" in refusal(run("sign", document("1.0"), "--key", "trusted.json"))


def test_id_and_version_may_be_given(run: Run) -> None:
    Path("plain.ttl").write_text(FIGURE_3)
    assert "I106" in run("register", "plain.ttl", "--store", "s.db").output
    assert not Path("s.db").exists()
    assert run("register", "plain.ttl", "--store", "s.db", "--id", CS, "--version", "1.0").exit_code == 0


def semantic_confirm_run(*arguments: str) -> Result:
    return CliRunner().invoke(bespeak, ["semantic", *arguments])


@pytest.fixture
def place(tmp_path: Path) -> str:
    place = str(tmp_path / "clinic.db")
    for name in ("clinical.ttl", "radiology.ttl", "radiology-clinical.json"):
        done = semantic_confirm_run("register", str(FOLDER / name), "--store", place, "--by", "ada")
        assert done.exit_code == 0, done.output
    return place


def listed(place: str) -> str:
    found = json.loads(semantic_confirm_run("list", "--kind", "alignment", "--store", place, "--json").output)
    return str(found[0]["confirmed_by"])


def test_confirmation_is_listed_shown_as_a_case_and_revoked(place: str) -> None:
    done = semantic_confirm_run("confirm", ALIGNMENT, "--store", place, "--by", "ada", "--reason", "reviewed")
    assert done.exit_code == 0, done.output
    assert "#report-summary equivalent" in done.output
    assert listed(place) == "operator:ada"
    assert "confirmed by operator:ada" in semantic_confirm_run("list", "--store", place).output
    cases = CliRunner().invoke(bespeak, ["cases", "list", "--state", "accepted", "--store", place])
    assert f"alignment {ALIGNMENT}" in cases.output
    revoked = semantic_confirm_run("confirm", ALIGNMENT, "--store", place, "--by", "bob", "--revoke", "--json")
    assert json.loads(revoked.output)["state"] == "revoked"
    assert listed(place) == ""
    again = semantic_confirm_run("confirm", ALIGNMENT, "--store", place, "--by", "bob", "--revoke")
    assert isinstance(again.exception, CommandFailedError)
    assert "is not confirmed" in str(again.exception)


def test_artifact_that_is_not_registered_cannot_be_confirmed(place: str) -> None:
    for arguments in (["https://z.example/a"], [ALIGNMENT, "--version", "9"]):
        refused = semantic_confirm_run("confirm", *arguments, "--store", place, "--by", "ada")
        assert isinstance(refused.exception, CommandFailedError)
        assert "is not a registered alignment" in str(refused.exception)


def test_unsigned_artifact_is_neither_registered_nor_confirmed_where_keys_are_trusted(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bespeak.toml").write_text(f'[semantic]\ntrusted_keys = ["{public_jwk(generate_key())["x"]}"]\n')
    monkeypatch.chdir(tmp_path)
    refused = semantic_confirm_run("confirm", ALIGNMENT, "--store", place, "--by", "ada")
    assert isinstance(refused.exception, CommandFailedError)
    assert "`trusted_keys` of [semantic]" in str(refused.exception)
    artifact = json.loads((FOLDER / "radiology-clinical.json").read_text()) | {"id": "https://a.example/0"}
    (tmp_path / "other.json").write_text(json.dumps(artifact))
    unsigned = semantic_confirm_run("register", "other.json", "--store", place, "--by", "ada")
    assert unsigned.exit_code == 1
    assert "the artifact is not signed, and `trusted_keys`" in unsigned.output
    (tmp_path / "stranger.json").write_text(json.dumps(public_jwk(generate_key())))
    stranger = semantic_confirm_run(
        "register", "other.json", "--store", place, "--by", "ada", "--trusted", "stranger.json"
    )
    assert "is not in `trusted_keys`" in str(stranger.exception)
