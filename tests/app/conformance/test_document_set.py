"""Holding validators to a set of documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.app.conformance.document_set import Case, Expected, Validation, find_cases, hold
from bespeak.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for kind in ("valid", "invalid", "borderline"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "menu.agis").write_text("agis: '1.0'\n")
    (tmp_path / "invalid" / "menu.expected").write_text("# why\nP320 /endpoints/0/path  # a verb\nD120\n")
    return tmp_path


def test_cases_are_found_by_folder_with_their_expected_findings(folder: Path) -> None:
    cases = find_cases(folder)
    assert [case.name for case in cases] == ["valid/menu.agis", "invalid/menu.agis", "borderline/menu.agis"]
    assert cases[1].expected == (Expected("P320", "/endpoints/0/path"), Expected("D120"))


def test_an_invalid_document_without_expectations_is_a_configuration_error(folder: Path) -> None:
    (folder / "invalid" / "menu.expected").write_text("# nothing\n")
    with pytest.raises(ConfigError, match="lists no findings"):
        find_cases(folder)


def test_invalid_document_without_an_expected_file_is_a_configuration_error(folder: Path) -> None:
    (folder / "invalid" / "menu.expected").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        find_cases(folder)


def test_a_folder_without_documents_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no \.agis documents"):
        find_cases(tmp_path)


def wrong(kind: str, verdict: Validation, *expected: Expected) -> str:
    case = Case(kind, Path("menu.agis"), expected)  # type: ignore[arg-type]
    [result] = hold(lambda _: verdict, [case])
    return result.wrong


@pytest.mark.requirement("AGIS-9.3-1", "AGIS-9.3-3")
@pytest.mark.parametrize("kind", ["valid", "borderline"])
def test_rejecting_a_valid_document_is_a_mistake(kind: str) -> None:
    assert wrong(kind, Validation(True, ())) == ""
    assert wrong(kind, Validation(False, (Expected("P320", "/x"),))) == "is rejected for P320 /x"
    assert wrong(kind, Validation(False)) == "is rejected"


@pytest.mark.requirement("AGIS-9.3-2")
def test_an_invalid_document_must_be_rejected_for_the_right_reasons() -> None:
    breaks = Expected("P320", "/x")
    assert wrong("invalid", Validation(False, (breaks,)), breaks) == ""
    assert wrong("invalid", Validation(True, ()), breaks) == "is accepted but breaks P320 /x"
    assert wrong("invalid", Validation(False, (Expected("D120"),)), breaks) == ("lacks P320 /x; has unexpected D120")


def test_validator_without_error_list_is_checked_by_acceptance_only() -> None:
    assert wrong("invalid", Validation(False), Expected("P320", "/x")) == ""
