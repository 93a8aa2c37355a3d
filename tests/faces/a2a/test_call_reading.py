"""What the parts of a message ask for. The names that agents use are tried over HTTP in test_skill_calls."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.faces.a2a.skills import Misread, Told, Wanted, read_call


@pytest.mark.parametrize(
    ("parts", "call"),
    [
        ([{"data": {"skill": "a", "input": {"x": 2**60 + 1}}}], Wanted("a", {"x": 2**60 + 1})),
        ([{"kind": "data", "data": {"skill": "a"}}], Wanted("a", {})),
        ([{"kind": "text", "text": "note"}, {"data": {"input": {"x": 1}}}], Wanted(None, {"x": 1})),
        ([{"text": ' {"skillId": "a", "params": {"x": 1}}'}], Wanted("a", {"x": 1})),
        ([{"text": "book"}, {"text": "a room"}], Told("book\na room")),
        ([{"text": '{"room": 12}'}], Told('{"room": 12}')),
        ([{"text": '{"skill": '}], Told('{"skill": ')),
        ([{"text": '{"skill": "a"}'}, {"text": "x"}], Told('{"skill": "a"}\nx')),
        ([], Told("")),
    ],
)
def test_one_data_part_is_a_call_and_texts_are_not(parts: list[Any], call: Wanted | Told) -> None:
    assert read_call(parts) == call


@pytest.mark.parametrize(
    "parts",
    [
        [{"data": 7}],
        [{"data": None}],
        [{"data": {}}],
        [{"data": {"skill": ["a"]}}],
        [{"data": {"skill": "a", "input": "x"}}],
        [{"data": {"skill": "a"}}, {"data": {"skill": "a"}}],
        [{"text": '{"skill": "a", "skill_id": "b"}'}],
    ],
)
def test_what_could_mean_two_things_means_none(parts: list[Any]) -> None:
    found = read_call(parts)
    assert isinstance(found, Misread)
    assert not found.is_file


@pytest.mark.parametrize(
    "part", [{"kind": "file", "file": {"uri": "http://x"}}, {"raw": "eA=="}, {"url": "http://x"}, 7]
)
def test_a_part_that_is_neither_data_nor_text_is_a_file(part: Any) -> None:
    found = read_call([{"data": {"skill": "a"}}, part])
    assert isinstance(found, Misread)
    assert found.is_file
