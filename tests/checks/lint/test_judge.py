"""What settings make of findings."""

from __future__ import annotations

import pytest

from bespeak.checks.lint.config import Config, Judge, PathIgnore
from bespeak.text.diagnostics.diagnostic import Diagnostic

LEAK = Diagnostic("P302", "error", "wrong", None, "/endpoints/0/path")
ODD = Diagnostic("P308", "warning", "odd", None, "/endpoints/0/path")


def test_rules_are_on_unless_they_are_not_selected_or_ignored() -> None:
    assert Judge(Config()).is_on("P302")
    assert not Judge(Config(ignore=("P3",))).is_on("P302")
    assert not Judge(Config(select=("S",))).is_on("P302")
    assert Judge(Config(select=("S",), extend_select=("P302",))).is_on("P302")


def test_unreadable_file_and_unknown_rule_are_always_shown() -> None:
    judge = Judge(Config(select=("S",), ignore=("ALL",), severity={"D102": "info"}))
    assert judge.is_on("D101")
    assert judge.is_on("D102")
    assert judge.is_on("Z999")
    assert judge.stands("D102")
    assert judge.severity("D102") is None


def test_a_severity_is_changed() -> None:
    judge = Judge(Config(severity={"P302": "info"}))
    assert judge.weighed(LEAK).severity == "info"
    assert judge.weighed(ODD) is ODD


@pytest.mark.parametrize(
    ("pattern", "pointer", "selectors", "ignored"),
    [
        ("old/*", "", ("P302",), True),
        ("old/*", "", ("P",), True),
        ("old/*", "", ("S",), False),
        ("new/*", "", ("P302",), False),
        ("*.agis", "/endpoints/0", ("P302",), True),
        ("*.agis", "/endpoints/0/path", ("P302",), True),
        ("*.agis", "/endpoints/1", ("P302",), False),
        ("*.agis", "/endpoints/0/pa", ("P302",), False),
    ],
)
def test_rules_are_off_for_files_and_parts_of_them(
    pattern: str, pointer: str, selectors: tuple[str, ...], ignored: bool
) -> None:
    judge = Judge(Config(per_path_ignores=(PathIgnore(pattern, pointer, selectors),)))
    assert judge.is_ignored(LEAK, "old/rooms.agis") is ignored


def test_in_a_conformance_run_no_must_is_hidden_or_lowered() -> None:
    everything = (PathIgnore("**", "", ("ALL",)),)
    config = Config(conformance=True, ignore=("ALL",), severity={"P": "info"}, per_path_ignores=everything)
    judge = Judge(config)
    assert judge.is_on("P302")
    assert judge.stands("P302")
    assert judge.weighed(LEAK) is LEAK
    assert not judge.is_ignored(LEAK, "a")
    assert not judge.is_on("P308")
    assert not judge.stands("P308")
