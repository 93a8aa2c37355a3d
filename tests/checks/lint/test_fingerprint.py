"""Names of findings that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.checks.lint.baseline import fingerprint, stable_pointer
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

BOOK = {"method": "BOOK", "path": "/room", "errors": ["taken", {"name": "closed"}, 7]}
FIND = {"method": "FIND", "path": "/room"}
WRONG = Diagnostic("P302", "error", "the path is wrong", Location("a", 3, 1), "/endpoints/0/path")


@pytest.mark.parametrize(
    ("pointer", "stable"),
    [
        ("", ""),
        ("/endpoints/0/path", "/endpoints/[BOOK /room]/path"),
        ("/endpoints/1", "/endpoints/[FIND /room]"),
        ("/endpoints/0/errors/0", "/endpoints/[BOOK /room]/errors/[taken]"),
        ("/endpoints/0/errors/1/name", "/endpoints/[BOOK /room]/errors/[closed]/name"),
        ("/endpoints/0/errors/2", "/endpoints/[BOOK /room]/errors/2"),
        ("/endpoints/9/path", "/endpoints/9/path"),
        ("/a~1b/0", "/a~1b/[x]"),
        ("/nowhere/0", "/nowhere/0"),
    ],
)
def test_an_item_is_named_by_what_it_is(pointer: str, stable: str) -> None:
    assert stable_pointer(pointer, {"endpoints": [BOOK, FIND], "a/b": ["x"]}) == stable


def test_moved_lines_and_a_new_order_keep_the_name() -> None:
    before = fingerprint(WRONG, "a.agis", {"endpoints": [BOOK, FIND]})
    moved = replace(WRONG, location=Location("a", 40, 9), pointer="/endpoints/1/path", severity="warning")
    assert fingerprint(moved, "a.agis", {"endpoints": [FIND, BOOK]}) == before


def test_a_place_in_the_message_does_not_matter() -> None:
    one = replace(WRONG, message="declared twice (b.toml:3:1)")
    other = replace(WRONG, message="declared  twice (b.toml:17:1)")
    assert fingerprint(one, "a", None) == fingerprint(other, "a", None)


@pytest.mark.parametrize("change", [{"rule": "P303"}, {"message": "other"}, {"pointer": "/endpoints/1/path"}], ids=str)
def test_another_finding_has_another_name(change: dict[str, Any]) -> None:
    data = {"endpoints": [BOOK, FIND]}
    assert fingerprint(replace(WRONG, **change), "a", data) != fingerprint(WRONG, "a", data)
    assert fingerprint(WRONG, "b", data) != fingerprint(WRONG, "a", data)


@given(st.text(), st.text(), st.recursive(st.none() | st.text(), st.lists))
def test_any_pointer_and_message_has_a_name(pointer: str, message: str, data: Any) -> None:
    finding = Diagnostic("P302", "error", message, None, pointer)
    assert len(fingerprint(finding, message, data)) == 20
