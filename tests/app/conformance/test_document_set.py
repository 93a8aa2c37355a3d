"""Holding validators to a set of documents."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bespeak.app.conformance.document_set import (
    Case,
    Expected,
    Validation,
    command_validator,
    find_cases,
    hold,
    own_validator,
)
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


@pytest.fixture
def case(tmp_path: Path) -> Case:
    file = tmp_path / "menu.agis"
    file.write_text("[]\n")
    return Case("invalid", file)


def test_bespeak_names_the_rules_a_document_breaks(case: Case) -> None:
    verdict = own_validator()(case)
    assert not verdict.accepted
    assert verdict.errors


def test_a_file_that_cannot_be_read_is_rejected(tmp_path: Path) -> None:
    verdict = own_validator()(Case("invalid", tmp_path / "missing.agis"))
    assert not verdict.accepted
    assert [error.rule for error in verdict.errors or ()] == ["D101"]


@pytest.mark.process
@pytest.mark.parametrize(("code", "accepted"), [(0, True), (1, False), (2, False)])
def test_exit_code_of_a_command_is_its_result(case: Case, code: int, accepted: bool) -> None:
    verdict = command_validator(f'{sys.executable} -c "import sys; sys.exit({code})"')(case)
    assert (verdict.accepted, verdict.errors) == (accepted, None)


@pytest.mark.process
def test_braces_are_replaced_by_the_file(case: Case) -> None:
    script = "import sys; sys.exit(0 if sys.argv[1].endswith('menu.agis') and sys.argv[2] == '--strict' else 1)"
    assert command_validator(f'{sys.executable} -c "{script}" {{}} --strict')(case).accepted


@pytest.mark.process
def test_file_is_appended_without_braces(case: Case) -> None:
    script = "import sys; sys.exit(0 if sys.argv[-1].endswith('menu.agis') else 1)"
    assert command_validator(f'{sys.executable} -c "{script}"')(case).accepted


@pytest.mark.parametrize("command", ["", "'unclosed"])
def test_invalid_command_is_a_configuration_error(command: str) -> None:
    with pytest.raises(ConfigError):
        command_validator(command)


@pytest.mark.process
def test_a_command_that_does_not_exist_is_a_configuration_error(case: Case) -> None:
    with pytest.raises(ConfigError, match="cannot be run: no-such-validator"):
        command_validator("no-such-validator {}")(case)
