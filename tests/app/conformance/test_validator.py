"""The validators the set is held against."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bespeak.app.conformance.document_set import Case, command_validator, own_validator
from bespeak.errors import ConfigError


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
