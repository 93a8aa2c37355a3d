"""Access to the values at a place of a description."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.document_text import DescriptionFile, Spot
from bespeak.text.source.tree import Location

DATA: dict[str, Any] = {
    "a": [{"b/c": 1}],
    "x-note": 1,
    "version": 3.1,
    "yes": "yes",
    "off": "OFF",
    "true": True,
    "n": 7,
}
ROOT = Spot(DATA, DescriptionFile("api.json", DATA, lambda _: Location("api.json")))


@pytest.mark.parametrize(
    ("parts", "value", "at"),
    [
        (("a", 0, "b/c"), 1, "/a/0/b~1c"),
        (("a", 5), None, "/a/5"),
        (("a", "0"), None, "/a/0"),
        (("version", "a", "b"), None, "/version/a/b"),
        ((), DATA, ""),
    ],
)
def test_value_below_a_key_is_found_or_none(parts: tuple[Any, ...], value: Any, at: str) -> None:
    spot = ROOT.below(*parts)
    assert (spot.value, spot.at) == (value, at)


def test_extensions_are_not_entries_and_scalars_have_no_parts() -> None:
    assert "x-note" not in dict(ROOT.entries())
    assert list(ROOT.below("n").entries()) == []
    assert list(ROOT.below("n").items()) == []
    assert [spot.at for spot in ROOT.below("a").items()] == ["/a/0"]


@pytest.mark.parametrize(("key", "text"), [("version", "3.1"), ("yes", "yes"), ("true", ""), ("a", ""), ("none", "")])
def test_a_number_can_be_read_as_text(key: str, text: str) -> None:
    assert ROOT.text(key) == text


@pytest.mark.parametrize(("key", "flag"), [("yes", True), ("off", False), ("true", True), ("n", None), ("none", None)])
def test_a_boolean_may_be_a_word_of_yaml_1_1(key: str, flag: bool | None) -> None:
    assert ROOT.flag(key) is flag
    assert Spot(1, ROOT.document).flag(key) is None
