"""Findings and values of tables read from documents."""

from __future__ import annotations

import pytest

from bespeak.text.diagnostics.diagnostic import brief, unquoted
from bespeak.text.reading.rules import MISSING_KEY, WRONG_VALUE
from bespeak.text.reading.table import Findings, as_list, as_mapping, as_text, as_texts
from bespeak.text.source.tree import Location


def findings(*, tolerant: bool = False) -> Findings:
    return Findings(lambda pointer: Location(f"file{pointer}"), tolerant=tolerant)


def test_finding_has_the_id_of_its_rule_and_the_place_of_its_pointer() -> None:
    noted = findings()
    noted.error(MISSING_KEY, "`path` is missing", "/endpoint", "Write it.")
    [finding] = noted.found
    assert str(finding) == "file/endpoint: error[D103]: `path` is missing (at /endpoint). Write it."
    assert noted.failed


def test_errors_of_a_tolerant_reader_are_warnings() -> None:
    noted = findings(tolerant=True)
    noted.error(WRONG_VALUE, "wrong")
    assert not noted.failed


def test_hundred_findings_are_kept_and_the_rest_is_one_error() -> None:
    noted = findings()
    for _ in range(200):
        noted.info(WRONG_VALUE, "odd")
    assert [finding.rule for finding in noted.found] == ["D104"] * 100 + ["D199"]
    assert noted.full
    assert noted.failed


def test_texts_are_shortened_and_only_the_strings_of_a_list_are_kept() -> None:
    assert brief("room") == "'room'"
    assert unquoted("room") == "room"
    assert len(unquoted("x" * 1_000)) < 100
    assert as_texts(["a", 1, None, "b"]) == ("a", "b")
    assert as_texts("ab") == ()


@pytest.mark.parametrize("value", [None, 1, True, "a", [1], {"a": 1}])
def test_value_of_another_type_counts_as_missing(value: object) -> None:
    assert as_mapping(value) == (value if isinstance(value, dict) else {})
    assert as_list(value) == (value if isinstance(value, list) else [])
    assert as_text(value) == (value if isinstance(value, str) else "")
