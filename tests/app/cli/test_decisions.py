"""Who decides, and why."""

from __future__ import annotations

import getpass

import click
import pytest

from bespeak.terminal.decisions import check_decision


@pytest.mark.parametrize("arguments", [("a\x1b", None, "ann"), ("a", " ", "ann"), ("a", None, "\n")])
def test_texts_must_be_printable(arguments: tuple[str, str | None, str]) -> None:
    with pytest.raises(click.UsageError, match="must be printable text"):
        check_decision(*arguments)


def test_decider_is_the_login_name_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "kim")
    assert check_decision("a", None, None) == "kim"
    assert check_decision("a", "agreed", "ann") == "ann"


def test_unknown_login_name_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr(getpass, "getuser", fail)
    with pytest.raises(click.UsageError, match="give one with --by NAME"):
        check_decision("a", None, None)
