"""Changes of a text."""

from __future__ import annotations

from lsprotocol import types

from bespeak.app.lsp.edits import Edit, applied, as_text_edits, repair
from bespeak.app.lsp.positions import Positions
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Replacement


def test_a_repair_is_put_where_it_belongs() -> None:
    finding = Finding(Diagnostic("P1", "error", "x"), edits=(Replacement(2, 4, 2, 5, "9"),))
    text = "a: 🛏\nb: 2\n"
    assert applied(text, repair(finding, Positions(text))) == "a: 🛏\nb: 9\n"


def test_a_repair_takes_the_line_ends_of_the_text() -> None:
    finding = Finding(Diagnostic("P1", "error", "x"), edits=(Replacement(1, 5, 1, 5, "\nb: 2"),))
    text = "a: 1\r\nc: 3\r\n"
    assert applied(text, repair(finding, Positions(text))) == "a: 1\r\nb: 2\r\nc: 3\r\n"


def test_edits_do_not_move_each_other() -> None:
    assert applied("0123456789", [Edit(1, 2, "aaa"), Edit(5, 5, "b"), Edit(8, 10, "")]) == "0aaa234b567"


def test_the_protocol_has_ranges() -> None:
    (edit,) = as_text_edits([Edit(2, 3, "x")], Positions("🛏ab"))
    assert edit == types.TextEdit(types.Range(types.Position(0, 3), types.Position(0, 4)), "x")
