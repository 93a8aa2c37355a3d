"""`bespeak semantic validate` judges envelopes, messages and registrations in files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.extensions.semantics.envelope.test_message import FIGURE_11
from tests.extensions.semantics.ontology.figures import FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_8, FIGURE_9

from bespeak.app.cli.main import bespeak
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.ontology.publication import publish_core
from bespeak.terminal import CommandFailedError

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("cs.ttl").write_text(FIGURE_3)
    Path("law.ttl").write_text(FIGURE_4)

    def invoke(document: Any, *args: str) -> Result:
        text = document if isinstance(document, str) else json.dumps(document, indent=2)
        Path("payload.json").write_text(text)
        return CliRunner().invoke(bespeak, ["semantic", "validate", "payload.json", *args])

    return invoke


BOTH = ("--ontology", "cs.ttl", "--ontology", "law.ttl")


def test_valid_payloads_are_accepted(run: Run) -> None:
    for document in (FIGURE_5, FIGURE_8):
        done = run(document, *BOTH)
        assert (done.exit_code, done.stdout) == (0, "accept\n")
    for document in (FIGURE_6, FIGURE_11):
        done = run(document)
        assert done.exit_code == 0
        assert done.stdout.startswith("accept (members only")


def test_figure_9_is_rejected_with_places(run: Run) -> None:
    done = run(FIGURE_9, *BOTH)
    assert (done.exit_code, done.stdout) == (1, "reject: termBinding sense conflicts with domain\n")
    # The line of the sense in the file.
    assert "payload.json:21:" in done.stderr
    assert "I227" in done.stderr


def test_result_is_printed_as_json(run: Run) -> None:
    done = run(FIGURE_9, *BOTH, "--json")
    assert done.exit_code == 1
    result = json.loads(done.stdout)
    assert (result["kind"], result["status"], result["references_checked"]) == ("envelope", "reject", True)
    assert result["violations"][-1] == {
        "rule": "I227",
        "path": "/semantic/profileContext/termBindings/0/sense",
        "value": "https://ex.org/onto/law#MasterOfLaws",
        "message": "/profileContext/termBindings/0/sense is 'https://ex.org/onto/law#MasterOfLaws', a concept of "
        "another domain than 'https://ex.org/onto/cs#ComputerScience'",
        "reason": "termBinding sense conflicts with domain",
    }


def test_consistency_rules_can_lead_to_renegotiation(run: Run) -> None:
    document = FIGURE_9["semantic"] | {"capabilityRefs": ["cs:TechTranslation"]}
    done = run(document, *BOTH, "--renegotiate")
    assert (done.exit_code, done.stdout) == (1, "renegotiate: termBinding sense conflicts with domain\n")


def test_registration_needs_its_members_and_known_capabilities(run: Run) -> None:
    assert "I213" in run({name: value for name, value in FIGURE_6.items() if name != "inputs"}).stderr
    agent = {"id": "cs:robot", "type": "ioa:Agent", "hasCapability": ["cs:TranslateTechDoc"]}
    both = {"@context": FIGURE_6["@context"], "@graph": [agent, {k: v for k, v in FIGURE_6.items() if k != "@context"}]}
    assert [one["rule"] for one in json.loads(run(both, *BOTH, "--json").stdout)["violations"]] == ["I221"]
    assert run(both).exit_code == 0


def test_hostile_context_is_refused_at_its_place(run: Run) -> None:
    done = run(FIGURE_5 | {"@context": "https://evil.example/ctx"}, "--json")
    (found,) = json.loads(done.stdout)["violations"]
    assert (found["rule"], found["path"], found["value"]) == ("I202", "/@context", "https://evil.example/ctx")


def test_unreadable_files_are_errors(run: Run) -> None:
    assert isinstance(run("{not json").exception, CommandFailedError)
    Path("cs.ttl").write_text("@prefix <")
    assert isinstance(run(FIGURE_5, *BOTH).exception, CommandFailedError)
    assert isinstance(run(FIGURE_5, "--base", "no iri").exception, ConfigError)
    missing = CliRunner().invoke(bespeak, ["semantic", "validate", "missing.json"])
    assert isinstance(missing.exception, ConfigError)


def test_documents_are_written_readable_for_all(tmp_path: Path) -> None:
    result = CliRunner().invoke(bespeak, ["semantic", "publish", "-o", str(tmp_path / "new" / "public")])
    assert result.exit_code == 0, result.output
    assert {path.name: path.read_text() for path in (tmp_path / "new" / "public").iterdir()} == publish_core()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new" / "public").iterdir()} == {0o644}


def test_base_is_configurable_and_checked(tmp_path: Path) -> None:
    run = CliRunner().invoke
    result = run(bespeak, ["semantic", "publish", "-o", str(tmp_path), "--base", "https://acme.example/m/"])
    assert result.exit_code == 0
    assert "https://acme.example/m/ioa/semantic#" in (tmp_path / "context.jsonld").read_text()
    for base in ("acme", "https://acme.example/m", "https://acme.example/\x1b[2J/"):
        result = run(bespeak, ["semantic", "publish", "-o", str(tmp_path), "--base", base])
        assert isinstance(result.exception, ConfigError)
        assert str(result.exception).startswith("the base must be an absolute IRI that ends in '/'")


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(bespeak, ["semantic", "publish", "-o", str(tmp_path / "file" / "x")])
    assert isinstance(result.exception, ConfigError)
    assert "cannot create the folder" in str(result.exception)
