"""Rules, findings and fixes."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import FrozenInstanceError
from importlib import import_module

import pytest
from tests.checks.lint.conftest import ROOM

from bespeak.checks.lint import rules
from bespeak.checks.lint.rule_index import RULES
from bespeak.checks.lint.rules import method
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, declared_in, printable
from bespeak.text.source.tree import Change, Location


def test_severity_follows_the_rule_and_a_finding_has_endpoint_place_and_advice() -> None:
    assert Rule("X1", "x", "MUST", "").severity == "error"
    assert Rule("X1", "x", "SHOULD", "").severity == "warning"
    assert Rule("X1", "x", "style", "").severity == "info"
    finding = method.SYNTAX.at(ROOM, "/method", "it is wrong", "Do better.")
    assert finding == Diagnostic(
        "M201", "error", "BOOK /room: it is wrong", Location("room.toml", 1), "/endpoint/method", "Do better."
    )


def test_ids_are_unique_and_so_are_names() -> None:
    names = [found.name for found in pkgutil.iter_modules(rules.__path__)]
    every = [rule for name in names for rule in declared_in(import_module(f"{rules.__name__}.{name}")).values()]
    assert sorted(RULES) == sorted(rule.id for rule in every)
    assert len({rule.name for rule in every}) == len(every)
    for rule in every:
        assert re.fullmatch(r"[DMPSVJHXYRW][1-9]\d\d", rule.id)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
        assert rule.source


@pytest.mark.parametrize("value", ["x" * 20_000, list(range(5_000)), object()])
def test_a_value_in_a_message_is_short(value: object) -> None:
    assert len(brief(value)) < 200


def test_fix_is_safe_by_default_and_immutable() -> None:
    changes = (Change("replace", "/path", "/room"),)
    assert Fix("Write /room", changes).safe
    assert Fix("Write /room", changes) != Fix("Write /room", changes, safe=False)
    with pytest.raises(FrozenInstanceError):
        Fix("Write /room", ()).title = "Write /rooms"  # type: ignore[misc]


def test_unprintable_characters_are_escaped() -> None:
    assert printable("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
