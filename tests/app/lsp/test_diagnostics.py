"""Findings in an editor."""

from __future__ import annotations

import json

import pytest
from lsprotocol import types
from tests.app.lsp import texts
from tests.checks.lint.agis_text import document, endpoint

from bespeak.app.lsp.diagnostics import MOST, shown, to_diagnostic, touching
from bespeak.app.lsp.positions import Positions
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.tree import Location


@pytest.mark.parametrize(
    ("severity", "shown_as"),
    [
        ("error", types.DiagnosticSeverity.Error),
        ("warning", types.DiagnosticSeverity.Warning),
        ("info", types.DiagnosticSeverity.Information),
    ],
)
def test_a_finding_keeps_its_severity_rule_and_advice(severity: Severity, shown_as: types.DiagnosticSeverity) -> None:
    finding = Finding(Diagnostic("P302", severity, "wrong", Location("x", 1, 1, 1, 3), "/a", "Mend it."), "abc")
    made = to_diagnostic(finding, Positions("a: 1"))
    assert (made.severity, made.code, made.source) == (shown_as, "P302", "bespeak")
    assert made.message == "wrong\nMend it."
    assert made.data == {"pointer": "/a", "fingerprint": "abc"}


def test_an_emoji_before_a_finding_counts_two() -> None:
    entry = {"x-icon": "🛏🛏", **endpoint(path="/room/")}
    text = json.dumps(document(entry), ensure_ascii=False)
    known, positions, number = texts.found(text, "P321")
    place = to_diagnostic(known.findings[number], positions).range
    assert place.start == types.Position(0, text.index('"/room/"') + 2)
    assert place.end == types.Position(0, text.index('"/room/"') + 2 + len('"/room/"'))


def test_an_unused_ignore_is_shown_as_unnecessary() -> None:
    text = texts.yaml().replace("path: /room", "path: /room  # bespeak: ignore[P302]")
    known, positions, number = texts.found(text, "D190")
    assert to_diagnostic(known.findings[number], positions).tags == [types.DiagnosticTag.Unnecessary]


def test_a_flood_of_findings_is_cut_and_said() -> None:
    finding = Finding(Diagnostic("P302", "error", "wrong"))
    made = shown([finding] * (MOST + 5), Positions("a"))
    assert len(made) == MOST + 1
    assert made[-1].message.startswith("5 more findings")


def test_findings_that_touch_the_cursor_are_included() -> None:
    finding = Finding(Diagnostic("P302", "error", "wrong", Location("x", 1, 3, 1, 5)))
    positions = Positions("0123456789")

    def at(character: int) -> types.Range:
        return types.Range(types.Position(0, character), types.Position(0, character))

    assert [bool(list(touching([finding], positions, at(number)))) for number in range(6)] == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]
