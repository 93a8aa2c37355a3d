"""Words of a tool: its verb, and what says that it changes something."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.verb_words import bare_words, change_words, tool_words


def first(name: str, summary: str = "") -> str:
    return next(tool_words(Candidate(name=name, summary=summary))).word


def changing(name: str, summary: str = "", **hints: Any) -> list[str]:
    return [word for word, _ in change_words(Candidate(name=name, summary=summary, **hints))]


@pytest.mark.requirement("AGIS-C.3-2")
@pytest.mark.parametrize(
    ("name", "summary", "word"),
    [
        ("book_reservation", "Books a reservation", "book"),
        ("get_data", "", "get"),
        ("webSearch", "Performs a web search", "search"),
        ("voice_clone", "Create a clone of a voice", "clone"),
        ("commit", "Records changes to the repository", "commit"),
        ("log", "Shows the commit logs", "show"),
        ("branch", "List branches", "list"),
        ("console_messages", "Returns all console messages", "return"),
        ("post_search", "Search by title", "search"),
        ("take_screenshot", "Take a screenshot of the page", "screenshot"),
        ("get_report", "Generates a report and mails it", "generate"),
        ("batch_create_items", "Create items", "create"),
    ],
)
def test_name_says_the_verb_unless_the_sentence_contradicts(name: str, summary: str, word: str) -> None:
    assert first(name, summary) == word


def test_manner_before_the_verb_is_not_a_part_of_it() -> None:
    assert tuple(bare_words(Candidate(name="reverse_geocode"))) == ("geocode",)
    assert tuple(bare_words(Candidate(name="bulk_delete_users"))) == ("delete", "users")


@pytest.mark.parametrize(
    ("name", "summary", "words"),
    [
        ("get_user", "Get a user", []),
        ("get_create_fields", "Get the fields for creating an issue", []),
        ("get_and_delete_mail", "Get a mail", ["delete"]),
        ("get_mail", "Get a mail and delete it", ["delete"]),
        ("diff", "Shows differences between branches or commits", []),
        ("find", "Run a find query against a collection", []),
        ("click", "Click an element", ["click", "click"]),
        ("files_delete", "", ["delete"]),
    ],
)
def test_words_for_a_change_are_found_where_verbs_stand(name: str, summary: str, words: list[str]) -> None:
    assert changing(name, summary) == words


def test_hint_that_a_call_reads_agrees_with_words_for_making_its_answer() -> None:
    assert changing("take_screenshot", "Take a screenshot", read_only=True) == []
    assert changing("take_screenshot", "Take a screenshot") != []
    assert changing("delete_user", "Delete a user", read_only=True) == ["delete", "delete"]
