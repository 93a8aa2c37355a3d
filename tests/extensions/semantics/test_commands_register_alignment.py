"""`bespeak semantic register` with alignments, on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.extensions.semantics.alignment import university

from bespeak.app.cli.main import bespeak
from bespeak.state.identity.jws import generate_key, private_text, public_jwk
from bespeak.terminal import CommandFailedError

ID = "https://ex.org/align/campus"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, data in zip("ab", university.documents(), strict=True):
        version = b'<owl:Ontology rdf:about=""><owl:versionInfo>1.0</owl:versionInfo></owl:Ontology>'
        Path(f"{name}.owl").write_bytes(data.replace(b'<owl:Ontology rdf:about=""/>', version))
    return lambda *args: CliRunner().invoke(bespeak, ["semantic", *args])


def register(run: Run, *options: str, file: str = "m.json") -> Result:
    return run("register", file, "--store", "s.db", *options)


def write(run: Run, *options: str) -> None:
    assert run("align", "a.owl", "b.owl", "-o", "m.json", "--id", ID, *options).exit_code == 0


@pytest.fixture
def registered(run: Run) -> Run:
    for name in ("a.owl", "b.owl"):
        assert register(run, file=name).exit_code == 0
    return run


def test_alignment_is_registered_with_the_versions_that_it_relates(registered: Run) -> None:
    write(registered)
    result = register(registered, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    row = json.loads(result.stdout)
    assert (row["kind"], row["id"], row["version"]) == ("alignment", ID, "1.0")
    assert row["refs"] == [{"id": iri, "version": "1.0"} for iri in (university.A, university.B)]


def test_notation_without_id_and_versions_gets_them(registered: Run) -> None:
    assert registered("align", "a.owl", "b.owl", "-o", "m.rdf", "--format", "alignment").exit_code == 0
    result = register(registered, "--id", ID, "--version", "1.0", "--json", file="m.rdf")
    assert json.loads(result.stdout)["refs"][0]["version"] == "1.0"


def test_unknown_ontology_and_unknown_terms_are_refused(run: Run) -> None:
    write(run)
    refused = register(run)
    assert isinstance(refused.exception, CommandFailedError)
    assert refused.output.count("which is not registered") == 2
    for name in ("a.owl", "b.owl"):
        register(run, file=name)
    Path("m.json").write_text(Path("m.json").read_text().replace('#Examination"', '#Poison"'))
    refused = register(run)
    assert isinstance(refused.exception, CommandFailedError)
    assert "I307" in refused.output


def test_signature_of_an_alignment_is_printed_and_registered(registered: Run) -> None:
    key = generate_key()
    Path("key.pem").write_text(private_text(key))
    Path("trusted.json").write_text(json.dumps(public_jwk(key)))
    assert registered("align", "a.owl", "b.owl", "-o", "m.tsv", "--format", "sssom", "--id", ID).exit_code == 0
    signed = registered("sign", "m.tsv", "--key", "key.pem")
    assert signed.exit_code == 0, signed.exception
    Path("m.jws").write_text(signed.stdout)
    result = register(registered, "--signature", "m.jws", "--trusted", "trusted.json", "--json", file="m.tsv")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["signature"] == signed.stdout.strip()


def test_only_an_alignment_with_id_and_exact_versions_can_be_signed(run: Run) -> None:
    Path("key.pem").write_text(private_text(generate_key()))
    assert run("align", "a.owl", "b.owl", "-o", "m.rdf", "--format", "alignment").exit_code == 0
    refused = run("sign", "m.rdf", "--key", "key.pem")
    assert isinstance(refused.exception, CommandFailedError)
    assert "I302" in refused.output
    refused = run("sign", "m.rdf", "--key", "key.pem", "--id", ID, "--version", "1.0")
    assert "must say the versions of its ontologies" in str(refused.exception)


def test_downgrade_is_refused(registered: Run) -> None:
    key = generate_key()
    Path("key.pem").write_text(private_text(key))
    Path("trusted.json").write_text(json.dumps(public_jwk(key)))
    write(registered, "--version", "1.1", "--key", "key.pem")
    assert json.loads(register(registered, "--trusted", "trusted.json", "--json").stdout)["signer"]
    write(registered, "--version", "1.2")
    assert "I309" in register(registered).output
    write(registered, "--version", "1.0", "--key", "key.pem")
    assert "I309" in register(registered, "--trusted", "trusted.json").output
