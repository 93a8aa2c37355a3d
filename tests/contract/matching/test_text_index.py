"""How texts are ranked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.matching.needs import words
from bespeak.contract.matching.text_index import TextIndex, read_fields, read_text


def _index(texts: list[str] | list[tuple[str, str]]) -> TextIndex:
    return TextIndex(read_text(text) if isinstance(text, str) else read_fields(text) for text in texts)


def test_rare_words_count_more_than_common_ones_and_forms_of_a_word_meet() -> None:
    texts = ["room with a view", "room with a piano", "room"]
    assert next(index for _, index in _index(texts).rank("room piano")) == 1
    assert words("Rooms, booked cities bookings") == ["room", "book", "city", "booking"]
    assert words("merge merged merges merging cancel cancelled access") == ["merg"] * 4 + ["cancel"] * 2 + ["acces"]


@given(st.text(max_size=200), st.lists(st.text(max_size=100), max_size=10))
def test_scores_lie_between_zero_and_one_and_come_in_order(need: str, texts: list[str]) -> None:
    ranked = _index(texts).rank(need)
    assert all(0 < score <= 1 for score, _ in ranked)
    assert [score for score, _ in ranked] == sorted((score for score, _ in ranked), reverse=True)


def test_first_part_counts_most_synonyms_less_and_all_words_give_a_high_score() -> None:
    assert [index for _, index in _index([("a view", "a room"), ("a room", "a view")]).rank("room")] == [1, 0]
    assert [index for _, index in _index(["receipt", "invoice", "room"]).rank("invoice")] == [1, 0]
    (score, place), *_ = _index(["the picture of a room", "a room"]).rank("rooms, pictures")
    assert place == 0
    assert score > 0.9


def test_words_far_inside_a_long_text_are_found() -> None:
    assert [place for _, place in _index([f"{'filling ' * 900}zebra", "room"]).rank("zebra")] == [0]
