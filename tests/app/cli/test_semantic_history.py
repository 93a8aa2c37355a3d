"""The history of a store counts for `bespeak semantic align` and `explain`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bespeak.app.cli.main import bespeak
from bespeak.app.cli.semantic_align import read_histories
from bespeak.app.cli.target_store import use_store
from bespeak.checks.alignment.signals import History
from bespeak.errors import ConfigError
from bespeak.state.store.commands.semantics import CountMappedCalls, MappedCalls

HEAD = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"


def fill(place: str, *calls: MappedCalls) -> None:
    asyncio.run(use_store(place, lambda store: store.do(CountMappedCalls(calls)), role="sole"))


def test_both_directions_of_a_mapping_count_together(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    fill(place, MappedCalls("x:a", "y:a", 3, 1), MappedCalls("y:a", "x:a", 1, 0))
    found = read_histories(place)
    assert found == {("x:a", "y:a"): History(4, 1), ("y:a", "x:a"): History(4, 1)}
    assert read_histories(None) == {}
    with pytest.raises(ConfigError, match="no store at"):
        read_histories(str(tmp_path / "other.db"))


def test_history_changes_the_score_of_a_mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for side in "ab":
        text = f'<x:{side}> a owl:Ontology . <x:{side}#note> a owl:Class ; rdfs:label "clinical note" .'
        Path(f"{side}.ttl").write_text(HEAD + text)
    fill("good.db", MappedCalls("x:a#note", "x:b#note", 40, 0))
    fill("bad.db", MappedCalls("x:b#note", "x:a#note", 0, 40))

    def explain(*options: str) -> Any:
        result = CliRunner().invoke(
            bespeak, ["semantic", "explain", "a.ttl", "b.ttl", "clinical note", "--json", *options]
        )
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)["candidates"][0]

    plain, good, bad = explain(), explain("--store", "good.db"), explain("--store", "bad.db")
    assert "history" not in plain["signals"]
    assert good["signals"]["history"] == 0.9762
    assert bad["score"] < plain["score"] <= good["score"]
    aligned = CliRunner().invoke(bespeak, ["semantic", "align", "a.ttl", "b.ttl", "--store", "good.db"])
    assert json.loads(aligned.stdout)["mappingRules"][0]["signals"]["history"] == 0.9762
