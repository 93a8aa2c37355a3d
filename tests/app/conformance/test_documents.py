"""The AGIS conformance set: bespeak gets every document right, and the set covers what it should."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cases import check_each

from bespeak.app.cli.conform import conform
from bespeak.app.conformance.document_set import KINDS, SOURCE, DocumentCase, find_cases, hold, own_validator
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rule_index import all_rules
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.pointer import parent
from bespeak.text.source.tree import Tree, detect_notation
from bespeak.text.source.yaml_tree import parse_yaml

CASES = find_cases(SOURCE)
INVALID = [case for case in CASES if case.kind == "invalid"]
FEWEST = {"valid": 40, "invalid": 125, "borderline": 40}

UNREADABLE = {"D101", "D102", "D128"}
"""What is expected of a file that holds no document; then nothing else can be said of it."""

WITHOUT_DOCUMENT = {
    "P306": "AGTP-API asks for it and AGIS does not: a validator of AGIS alone may accept such paths",
    "P307": "AGTP-API asks for it and AGIS does not: a validator of AGIS alone may accept such endpoints",
    "S406": "it is about endpoint files; of an AGIS document S417 says the same",
    "S425": "it is asked at conformance level 2, and the set is for level 1, which is the required one",
    "S432": "it is asked at conformance level 2, and the set is for level 1, which is the required one",
    "Y823": "it is about [[data]] in a configuration, which an AGIS document does not have",
}
"""Errors of AGIS documents that no document of the set has, and why."""

judge = own_validator()


def text_of(case: DocumentCase) -> str | None:
    try:
        return case.file.read_text("utf-8")
    except UnicodeDecodeError:
        return None


def data_of(case: DocumentCase) -> Any:
    """What stands in a document; None if nothing can be read."""
    text = text_of(case)
    if text is None:
        return None
    tree = (parse_json if detect_notation(text) == "json" else parse_yaml)(text, str(case.file))
    return tree.data if isinstance(tree, Tree) else None


def find(data: Any, pointer: str) -> bool:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict) and key in data:
            data = data[key]
        elif isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        else:
            return False
    return True


@pytest.mark.requirement("AGIS-9.3-1", "AGIS-9.3-2", "AGIS-9.3-3")
def test_bespeak_validates_every_document_correctly() -> None:
    results = list(hold(judge, CASES))
    assert len(results) == len(CASES)
    assert [f"{result.case.name} {result.wrong}" for result in results if result.wrong] == []


@pytest.mark.requirement("AGIS-9.1-2", "AGIS-9.3-2")
def test_every_error_has_message_location_and_help() -> None:
    context = LintContext(catalog=load_bundled())
    for case in INVALID:
        text = text_of(case)
        for finding in check_text(text, str(case.file), context).findings if text is not None else ():
            if finding.severity == "error":
                assert len(finding.message) > 10, case.name
                assert finding.location is not None, case.name
                assert finding.location.line, case.name
                assert finding.help, f"{case.name}: {finding}"
                assert finding.rule in all_rules(), case.name


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_enough_documents(kind: str) -> None:
    assert sum(case.kind == kind for case in CASES) >= FEWEST[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_both_serializations_are_well_represented(kind: str) -> None:
    texts = [text for case in CASES if case.kind == kind and (text := text_of(case)) is not None]
    json = sum(detect_notation(text) == "json" for text in texts)
    assert len(texts) / 5 < json < len(texts) * 4 / 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_documents_come_from_many_domains(kind: str) -> None:
    assert len({domain for case in CASES if case.kind == kind for domain in domains(case)}) >= 10


def domains(case: DocumentCase) -> Iterator[str]:
    data = data_of(case)
    vocabulary = data.get("vocabulary") if isinstance(data, dict) else None
    domain = vocabulary.get("domain") if isinstance(vocabulary, dict) else None
    if isinstance(domain, str):
        yield domain


@pytest.mark.requirement("AGIS-9.3-2")
def test_every_agis_error_is_covered_by_a_document() -> None:
    # What AGIS asks, what reading a file asks, and the two rules about endpoints beside each other.
    # The rules W9.. are about what a live service sends, which no document can show.
    errors = (rule for rule in all_rules().values() if rule.severity == "error" and rule.is_agis)
    possible = {rule.id for rule in errors if not rule.id.startswith("W")}
    possible |= {"D101", "D102", "P306", "P307"}
    shown = {expected.rule for case in INVALID for expected in case.expected}
    assert possible - shown == WITHOUT_DOCUMENT.keys()
    assert shown <= possible


def test_expected_file_has_a_comment() -> None:
    for case in INVALID:
        about, *lines = case.file.with_suffix(".expected").read_text("utf-8").splitlines()
        assert about.startswith("# "), case.name
        assert len(lines) == len(case.expected), case.name
        assert all(re.fullmatch(r"[A-Z]\d{3}(?: /\S*)? +# \S.*", line) for line in lines), case.name


def test_expected_files_have_their_documents_and_most_invalid_documents_one_defect() -> None:
    files = {file.stem for file in (SOURCE / "invalid").glob("*.expected")}
    assert files == {case.file.stem for case in INVALID}
    assert sum(len(case.expected) == 1 for case in INVALID) > 0.9 * len(INVALID)


def test_invalid_document_is_valid_apart_from_its_defect() -> None:
    def check(case: DocumentCase) -> None:
        rules = {expected.rule for expected in case.expected}
        data = data_of(case)
        if rules & UNREADABLE:
            assert len(case.expected) == 1
            assert not isinstance(data, dict)
            return
        assert isinstance(data, dict)
        for expected in case.expected:
            # What is missing is told at the place where it should be.
            assert find(data, expected.pointer) or find(data, parent(expected.pointer)), expected

    check_each(INVALID, check, name=lambda case: case.name)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(conform, ["--agis", *arguments])


@pytest.mark.requirement("AGIS-9.3-1", "AGIS-9.3-2", "AGIS-9.3-3")
def test_bespeak_conforms_by_its_own_command() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert result.output.count(" correct") == len(KINDS)


@pytest.mark.process
def test_validator_that_accepts_everything_fails_on_invalid_documents() -> None:
    result = run("--validator", "true")
    assert result.exit_code == 1
    assert f"invalid     0 of {len(INVALID)} correct" in result.output
    assert "invalid/empty-file.agis is accepted but breaks D128" in result.output
    assert "\nvalid/" not in result.output


@pytest.mark.process
def test_validator_that_rejects_everything_fails_on_valid_documents() -> None:
    result = run("--validator", "false")
    assert result.exit_code == 1
    assert f"invalid     {len(INVALID)} of {len(INVALID)} correct" in result.output
    assert "invalid/" not in result.output


@pytest.mark.process
def test_installed_package_includes_the_document_set(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=SOURCE.parents[1])
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"bespeak/app/conformance/documents/{case.name}" for case in CASES} <= names
    assert "bespeak/app/conformance/documents/invalid/empty-file.expected" in names
