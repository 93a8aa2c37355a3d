"""Holding validators to a set of documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows

from bespeak.app.conformance.document_set import (
    Acceptance,
    DocumentCase,
    Expected,
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


@rows(
    "change, message",
    (lambda folder: (folder / "invalid/menu.expected").write_text("# nothing\n"), "lists no findings"),
    (lambda folder: (folder / "invalid/menu.expected").unlink(), "cannot be read"),
    (lambda folder: [file.unlink() for file in folder.rglob("*.agis")], r"no \.agis documents"),
)
def test_an_incomplete_set_is_a_configuration_error(folder: Path, change: Any, message: str) -> None:
    change(folder)
    with pytest.raises(ConfigError, match=message):
        find_cases(folder)


def wrong(kind: str, verdict: Acceptance, *expected: Expected) -> str:
    case = DocumentCase(kind, Path("menu.agis"), expected)  # type: ignore[arg-type]
    [result] = hold(lambda _: verdict, [case])
    return result.wrong


@pytest.mark.requirement("AGIS-9.3-1", "AGIS-9.3-3")
@pytest.mark.parametrize("kind", ["valid", "borderline"])
def test_rejecting_a_valid_document_is_a_mistake(kind: str) -> None:
    assert wrong(kind, Acceptance(True, ())) == ""
    assert wrong(kind, Acceptance(False, (Expected("P320", "/x"),))) == "is rejected for P320 /x"
    assert wrong(kind, Acceptance(False)) == "is rejected"


@pytest.mark.requirement("AGIS-9.3-2")
def test_invalid_document_must_be_rejected_for_the_right_reasons_if_they_are_listed() -> None:
    breaks = Expected("P320", "/x")
    assert wrong("invalid", Acceptance(False, (breaks,)), breaks) == ""
    assert wrong("invalid", Acceptance(True, ()), breaks) == "is accepted but breaks P320 /x"
    assert wrong("invalid", Acceptance(False, (Expected("D120"),)), breaks) == "lacks P320 /x; has unexpected D120"
    assert wrong("invalid", Acceptance(False), Expected("P320", "/x")) == ""


@pytest.fixture
def case(tmp_path: Path) -> DocumentCase:
    file = tmp_path / "menu.agis"
    file.write_text("[]\n")
    return DocumentCase("invalid", file)


def test_bespeak_names_the_rules_a_document_breaks(case: DocumentCase) -> None:
    verdict = own_validator()(case)
    assert not verdict.accepted
    assert verdict.errors


def test_a_file_that_cannot_be_read_is_rejected(tmp_path: Path) -> None:
    verdict = own_validator()(DocumentCase("invalid", tmp_path / "missing.agis"))
    assert not verdict.accepted
    assert [error.rule for error in verdict.errors or ()] == ["D101"]


@pytest.mark.process
@rows(
    "code, arguments, accepted",
    *((f"sys.exit({number})", "", number == 0) for number in (0, 1, 2)),
    ("sys.exit(sys.argv[2] != '--strict' or not sys.argv[1].endswith('menu.agis'))", "{} --strict", True),
    ("sys.exit(not sys.argv[-1].endswith('menu.agis'))", "", True),
)
def test_exit_code_of_a_command_is_its_result(case: DocumentCase, code: str, arguments: str, accepted: bool) -> None:
    verdict = command_validator(f'{sys.executable} -c "import sys; {code}" {arguments}')(case)
    assert (verdict.accepted, verdict.errors) == (accepted, None)


@pytest.mark.parametrize("command", ["", "'unclosed"])
def test_invalid_command_is_a_configuration_error(command: str) -> None:
    with pytest.raises(ConfigError):
        command_validator(command)


@pytest.mark.process
def test_a_command_that_does_not_exist_is_a_configuration_error(case: DocumentCase) -> None:
    with pytest.raises(ConfigError, match="cannot be run: no-such-validator"):
        command_validator("no-such-validator {}")(case)
