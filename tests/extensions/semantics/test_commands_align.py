"""`bespeak semantic align` and `explain`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.extensions.semantics.alignment import university

from bespeak.app.cli.main import bespeak
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.alignment.artifact import Trust, judge_alignment
from bespeak.extensions.semantics.alignment.notation import alignment_notation, read_alignment
from bespeak.extensions.semantics.alignment.signals import History
from bespeak.extensions.semantics.commands_documents import read_histories
from bespeak.extensions.semantics.ontology.reader import load_ontology
from bespeak.extensions.semantics.store import CountMappedCalls, MappedCalls
from bespeak.state.identity.key_files import parse_keys
from bespeak.terminal import CommandFailedError
from bespeak.terminal.target_store import use_store
from bespeak.text.language import embedding

A, B = f"{university.A}#", f"{university.B}#"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "a.owl", tmp_path / "b.owl"]
    for path, data in zip(paths, university.documents(), strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


run = invoking(bespeak, "semantic")


@pytest.mark.parametrize("notation", ["json", "sssom", "alignment"])
def test_alignment_is_written_in_every_notation(files: list[str], tmp_path: Path, notation: str) -> None:
    path = tmp_path / "mapping"
    assert "mappings, " in run("align", *files, "-o", str(path), "--format", notation, code=0).stderr
    data = path.read_bytes()
    assert alignment_notation(data) == notation
    alignment = read_alignment(data, "mapping").alignment
    assert alignment is not None
    assert (f"{A}Exam", f"{B}Examination") in {(rule.source, rule.target) for rule in alignment.rules}


def test_artifact_is_printed_without_a_file_and_the_threshold_decides_what_is_accepted(files: list[str]) -> None:
    artifact = json.loads(run("align", *files).stdout)
    assert (artifact["sourceOntologyId"], artifact["provenance"]["tool"]) == (university.A, "bespeak")
    assert artifact["version"] == "1.0"
    low, high = (json.loads(run("align", *files, "--threshold", text).stdout) for text in ("0.5", "0.9"))
    assert len(low["mappingRules"]) > len(high["mappingRules"])
    assert all(rule["confidence"] >= 0.9 for rule in high["mappingRules"])


def test_override_is_recorded_with_a_name_and_kept_by_the_next_run(files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"
    decision = ("--override", f"{A}PhDStudent", f"{B}Doctoral_Student", "--by", "ann")
    assert run("align", *files, "-o", str(path), *decision).exit_code == 0
    again = json.loads(run("align", *files, "--base", str(path)).stdout)
    rule = next(one for one in again["mappingRules"] if one["from"] == f"{A}PhDStudent")
    assert (rule["to"], rule["override"], rule["confirmedBy"]) == (f"{B}Doctoral_Student", True, "ann")
    changed = json.loads(run("align", *files, "--base", str(path), "--before", *files).stdout)
    assert changed["mappingRules"] == again["mappingRules"]


def test_signed_artifact_is_trusted_by_those_who_have_the_public_key(files: list[str], tmp_path: Path) -> None:
    key, path = tmp_path / "key.json", tmp_path / "mapping.json"
    public = CliRunner().invoke(bespeak, ["keys", "new", "-o", str(key)])
    assert public.exit_code == 0, public.output
    options = ("-o", str(path), "--key", str(key), "--id", "https://ex.org/align/1")
    assert run("align", *files, *options).exit_code == 0
    keys = parse_keys(key.read_text())
    assert isinstance(keys, dict), keys
    source, _ = load_ontology(Path(files[0]))
    judged = judge_alignment(path.read_bytes(), "mapping.json", trust=Trust(keys=keys, signed=True), source=source)
    assert judged.alignment is not None, judged.findings
    assert judged.alignment.signer in keys


def test_explanation_shows_candidates_signals_and_the_outcome(files: list[str]) -> None:
    result = run("explain", *files, "Exam", code=0)
    assert f"{B}Examination: mapped" in result.stdout
    assert "lexical 1.00" in result.stdout
    assert "band accept" in result.stdout
    asked = json.loads(run("explain", *files, f"{A}GraduationCeremony", "--json").stdout)
    assert asked["candidates"][0]["outcome"] == "for a person to decide"
    assert "no term has a similar name" in run("explain", *files, "Scholarship").stdout


@rows(
    "arguments, message",
    (("explain", "Nothing"), "Nothing names none of the terms"),
    (("align", "--override", f"{A}Exam", f"{B}Nothing", "--by", "ann"), "names none of the terms of"),
)
def test_unknown_terms_are_named(files: list[str], arguments: tuple[str, ...], message: str) -> None:
    result = run(arguments[0], *files, *arguments[1:])
    assert isinstance(result.exception, ConfigError | CommandFailedError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    "options",
    [("--before", "a", "b"), ("--key", "k"), ("--override", "", "x:1"), ("--threshold", "2"), ("--base", "none")],
)
def test_options_that_do_not_fit_are_refused(files: list[str], options: tuple[str, ...]) -> None:
    assert run("align", *files, *options).exit_code != 0


def test_ontology_that_cannot_be_read_ends_the_command(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.ttl").write_text("this is not Turtle")
    assert isinstance(run("align", str(tmp_path / "bad.ttl"), files[1]).exception, CommandFailedError)


def test_missing_vectors_are_named(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_model", lambda: None)
    result = run("align", *files, "--embeddings")
    assert isinstance(result.exception, ConfigError)
    assert "bespeak[embeddings]" in str(result.exception)


HEAD = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"


def fill(place: str, *calls: MappedCalls) -> None:
    asyncio.run(use_store(place, lambda store: store.do(CountMappedCalls(calls)), role="sole"))


def test_both_directions_of_a_mapping_count_together(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    fill(place, MappedCalls("x:a", "y:a", 3, 1), MappedCalls("y:a", "x:a", 1, 0))
    assert read_histories(place) == {("x:a", "y:a"): History(4, 1), ("y:a", "x:a"): History(4, 1)}
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


def test_align_lists_what_to_decide_and_what_comes_next_and_its_artifact_is_registered(
    files: list[str], tmp_path: Path
) -> None:
    path, store = tmp_path / "mapping.json", str(tmp_path / "x.db")
    said = run("align", *files, "-o", str(path), code=0).stderr
    assert "terms to decide\n  http://campus.example/a#" in said
    assert f"--base {path} --override FROM TO" in said
    assert f"register: bespeak semantic register {path} TARGET" in said
    for file in files:
        run("register", file, "--store", store, "--version", "1.0", "--by", "ann", code=0)
    done = run("register", str(path), "--store", store, "--by", "ann", code=0).stdout
    assert "registered   http://campus.example/a/align/b 1.0" in done


def test_decision_survives_a_change_of_its_terms_and_is_listed_when_one_is_gone(
    files: list[str], tmp_path: Path
) -> None:
    path, later = tmp_path / "mapping.json", tmp_path / "later.owl"
    decision = ("--override", f"{A}PhDStudent", f"{B}Doctoral_Student", "--by", "ann")
    run("align", *files, "-o", str(path), *decision, code=0)
    text = Path(files[0]).read_text()
    for old, new, kept in (("PhDStudent", "PhDStudent", True), ("PhDStudent", "Doctorand", False)):
        later.write_text(text.replace(f"{old}", f"{new}").replace("Scholarship", "Grant"))
        result = run("align", str(later), files[1], "--base", str(path), "--before", *files, code=0)
        rules = [rule for rule in json.loads(result.stdout)["mappingRules"] if rule.get("override")]
        assert bool(rules) is kept
        assert ("dropped: the decision" in result.stderr) is not kept


@pytest.mark.parametrize("notation", ["json", "sssom"])
def test_decision_that_a_term_has_no_counterpart_is_kept_and_not_asked_again(
    files: list[str], tmp_path: Path, notation: str
) -> None:
    path, later = str(tmp_path / "mapping"), tmp_path / "later.owl"
    decision = ("--override", "Exam", "", "--by", "ann", "-o", path, "--format", notation)
    assert f"{A}Exam " not in run("align", *files, *decision, code=0).stderr
    later.write_text(Path(files[0]).read_text().replace("Scholarship", "Grant"))
    result = run("align", str(later), files[1], "--base", path, "--before", *files, code=0)
    again = json.loads(result.stdout)
    assert again["unmapped"] == [{"from": f"{A}Exam", "confirmedBy": "ann"}]
    assert not [one for one in again["mappingRules"] if one["from"] == f"{A}Exam"]
    assert f"{A}Exam " not in result.stderr
    replaced = json.loads(run("align", *files, "--base", path, "--override", "Exam", "Examination", code=0).stdout)
    assert "unmapped" not in replaced
    later.write_text(Path(files[0]).read_text().replace("Exam", "Colloquium"))
    told = run("align", str(later), files[1], "--base", path, "--before", *files, code=0).stderr
    assert f"dropped: the decision {A}Exam = nothing, because a term is gone" in told


def test_values_that_a_person_has_written_survive_a_change_of_their_terms(files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"
    run("align", *files, "-o", str(path), code=0)
    artifact = json.loads(path.read_text())
    rule = next(one for one in artifact["mappingRules"] if one["from"] == f"{A}Exam")
    rule["values"] = {"factor": 2}
    path.write_text(json.dumps(artifact))
    other = tmp_path / "other.ttl"
    other.write_text(
        f'{HEAD}<{university.A}> a owl:Ontology . <{A}Exam> a owl:Class ; rdfs:label "test of a year", "Exam" .'
    )
    result = run("align", str(other), files[1], "--base", str(path), "--before", *files, code=0)
    [again] = [one for one in json.loads(result.stdout)["mappingRules"] if one["from"] == f"{A}Exam"]
    assert again["values"] == {"factor": 2}


def test_terms_without_a_candidate_are_named(files: list[str]) -> None:
    told = run("align", *files, code=0).stderr
    line = next(one for one in told.splitlines() if one.startswith("without a candidate: "))
    assert "Scholarship" in line
