"""`bespeak lint` and the ontologies in the store of a deployment."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.checks.lint.endpoint_files import ENDPOINT
from tests.extensions.semantics.ontology.figures import FIGURE_3

from bespeak.app.cli.main import bespeak

CS = "https://ex.org/onto/cs"
HEADER = f'@prefix owl: <http://www.w3.org/2002/07/owl#> . <{CS}> a owl:Ontology ; owl:versionInfo "1.0" .\n'
KNOWN = f"{CS}#TechTranslation"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a deployment that declares concepts: one known, one of another ontology, one misspelt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cs.ttl").write_text(HEADER + FIGURE_3)
    (tmp_path / "bespeak.toml").write_text('[server]\nserver_id = "h.example"\noperator = "H"\n\n[semantic]\n')
    (tmp_path / "endpoints").mkdir()
    concepts = json.dumps([KNOWN, "https://ex.org/onto/old#TechTranslation", "https://zoo.example/no#Giraffe"])
    text = ENDPOINT.replace("is_idempotent = false", f"is_idempotent = false\nconcepts = {concepts}")
    (tmp_path / "endpoints" / "book.toml").write_text(text)
    return tmp_path


def lint() -> list[dict[str, Any]]:
    result = CliRunner().invoke(bespeak, ["lint", "--select", "I111", "--format", "json", "--exit-zero"])
    assert result.exit_code == 0, result.output
    findings: list[dict[str, Any]] = json.loads(result.output)["findings"]
    return findings


def register() -> None:
    assert CliRunner().invoke(bespeak, ["semantic", "register", "cs.ttl", "--by", "ada"]).exit_code == 0


def test_concepts_that_no_registered_ontology_has_are_reported_with_the_nearest_one(folder: Path) -> None:
    register()
    first, second = lint()
    assert (first["rule"], first["severity"], first["file"]) == ("I111", "warning", "endpoints/book.toml")
    assert "onto/old#TechTranslation" in first["message"]
    assert f"Write {KNOWN}, if that is meant." in first["help"]
    assert "Giraffe" in second["message"]
    assert second["help"].startswith("`bespeak semantic register`")


def test_similar_terms_are_looked_for_only_for_the_first_of_many_unknown_concepts(folder: Path) -> None:
    register()
    misspelt = [f"{KNOWN}{'x' * (number % 4)}{number}" for number in range(60)]
    path = folder / "endpoints" / "book.toml"
    path.write_text(ENDPOINT.replace("is_idempotent = false", f"is_idempotent = false\nconcepts = {misspelt}"))
    advised = [KNOWN in one["help"] for one in lint()]
    assert advised == [True] * 20 + [False] * 40


def test_nothing_is_reported_where_the_registry_is_not_at_hand_or_not_used(folder: Path) -> None:
    assert lint() == []  # no store yet: what is registered where the service runs is not known
    register()
    (folder / "bespeak.toml").write_text('[server]\nserver_id = "h.example"\noperator = "H"\n')
    assert lint() == []
    (folder / "bespeak.toml").write_text('[server]\nserver_id = "h.example"\noperator = "H"\n\n[semantic]\n')
    (folder / "bespeak.db").write_bytes(b"no database" * 100)
    assert lint() == []


def test_an_editor_with_an_event_loop_of_its_own_gets_the_findings_too(folder: Path) -> None:
    register()

    async def edit() -> int:
        return len(lint())

    assert asyncio.run(edit()) == 2
