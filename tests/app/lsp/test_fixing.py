"""Every safe repair at once."""

from __future__ import annotations

from tests.app.lsp import texts
from tests.process import ROOT

from bespeak.app.lsp.fixing import fix_all, is_safe

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()


def test_safe_repairs_are_made_until_there_are_none() -> None:
    before = texts.checked(ROOMS)
    assert any(map(is_safe, before.findings))
    after = texts.checked(fix_all(before, texts.checked))
    assert not any(map(is_safe, after.findings))
    assert "P321" not in texts.rules(after)


def test_unsafe_repairs_are_left_alone() -> None:
    text = fix_all(texts.checked(ROOMS), texts.checked)
    assert "method: BOOKING" in text


def test_a_text_without_repairs_stays() -> None:
    text = texts.yaml()
    assert fix_all(texts.checked(text), texts.checked) == text


def test_repairs_that_undo_each_other_come_to_an_end() -> None:
    before = texts.checked(ROOMS)
    assert fix_all(before, lambda _: before) == ROOMS
