"""The closed lists of words."""

from __future__ import annotations

from bespeak.text.language import phrases
from bespeak.text.language.verb_form import is_verb


def test_every_list_is_in_lower_case() -> None:
    lists = [value for name, value in vars(phrases).items() if name.isupper() and isinstance(value, frozenset)]
    assert len(lists) > 10
    assert all(word == word.lower() for words in lists for word in words)


def test_words_that_introduce_another_verb_are_verbs() -> None:
    assert [verb for verb in phrases.PURPOSES | phrases.VERBS_FIRST if not is_verb(verb)] == []


def test_preposition_is_not_a_determiner() -> None:
    assert phrases.PREPOSITIONS.isdisjoint(phrases.DETERMINERS)
