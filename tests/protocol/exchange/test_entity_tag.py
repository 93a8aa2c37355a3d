"""Tags of documents: the same for the same bytes, and known again however a caller repeats them."""

from __future__ import annotations

import pytest

from bespeak.protocol.exchange.headers import entity_tag, is_held

TAG = entity_tag(b"rooms")


def test_a_tag_is_in_quotes_and_follows_the_bytes() -> None:
    assert TAG == entity_tag(b"rooms") != entity_tag(b"room")
    assert TAG[0] == TAG[-1] == '"'


@pytest.mark.parametrize("held", [TAG, f"W/{TAG}", f'"other", {TAG}', f'"other",W/{TAG} ', "*"])
def test_a_request_that_names_the_tag_holds_it(held: str) -> None:
    assert is_held(TAG, {"if-none-match": held})


@pytest.mark.parametrize("held", ["", '"other"', TAG.strip('"'), TAG[:-2] + '"', f"w/{TAG}"])
def test_anything_else_is_not_it(held: str) -> None:
    assert not is_held(TAG, {"if-none-match": held})


def test_a_request_without_tags_holds_nothing() -> None:
    assert not is_held(TAG, {"if-match": TAG})
