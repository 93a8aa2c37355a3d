"""A candidate gets a contract with or without HTTP methods; every guess is flagged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import check_path
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, judge_all
from bespeak.documents.adoption.verb_words import change_words
from bespeak.text.language.consistency import judge

CATALOG = load_bundled()
HINTS = st.sampled_from([None, True, False])
NAMES = st.sampled_from(["get_report", "send_mail", "acme_delete_user", "weather", "take_payment", "create_or_get_x"])
TEXTS = st.sampled_from(["", "Get a report", "Generates a report and mails it", "Weather of a city", "Removes it."])


def tool(name: str, description: str = "", **hints: Any) -> Judgement:
    """Judge a candidate as an MCP tool list describes one: without method and path."""
    return judge_all([Candidate(name=name, description=description, **hints)], CATALOG)[0]


@pytest.mark.parametrize(
    ("name", "description", "place", "impact"),
    [
        ("get_weather", "Get the weather of a city.", "FETCH /weather", "informational"),
        ("list_issues", "List issues in a repository", "LIST /issues", "informational"),
        ("book_room", "Book a room", "BOOK /room", "irreversible"),
        ("github_create_issue", "", "CREATE /issues", "irreversible"),
        ("create_or_update_file", "Create or update a single file", "CREATE /file", "irreversible"),
        ("get_user_by_id", "", "FETCH /user", "informational"),
        ("archive_page", "Archive a page", "ARCHIVE /page", "reversible"),
        ("weather", "Weather of a city", "EXECUTE /weather", "irreversible"),
        ("get_report", "Generates a report and mails it to everybody", "GENERATE /reports", "irreversible"),
    ],
)
def test_tool_without_method_and_path_gets_both_and_an_impact(
    name: str, description: str, place: str, impact: str
) -> None:
    found = tool(name, description)
    assert (f"{found.method} {found.path.path}", found.semantic.impact) == (place, impact)
    assert judge(found.method, found.semantic.intent).verdict == "consistent"
    assert found.semantic.outcome


def test_everything_guessed_about_a_tool_is_flagged() -> None:
    flagged = {guess.at: guess for guess in tool("book_room", "Book a room").guesses}
    named = {"impact", "is_idempotent", "confidence", "intent", "outcome", "capability"}
    assert set(flagged) == {"/method", "/path", *(f"/semantic/{name}" for name in named)}
    assert flagged["/semantic/impact"].risk == "high"
    assert flagged["/path"].why == "no path is described; the name names the subject"


def test_tool_that_only_its_words_call_reading_is_a_high_risk() -> None:
    [guess] = [guess for guess in tool("get_weather").guesses if guess.at == "/semantic/impact"]
    assert (guess.risk, guess.otherwise) == ("high", "irreversible")


def test_hints_confirm_words_and_never_clear_them() -> None:
    assert tool("weather", read_only=True).semantic.impact == "informational"
    assert tool("get_weather", read_only=False).semantic.impact == "irreversible"
    assert tool("get_weather", destructive=True).semantic.impact == "irreversible"
    assert tool("delete_user", read_only=True).semantic.impact == "irreversible"
    assert tool("archive_page", destructive=True).semantic.impact == "irreversible"


def test_idempotent_hint_is_used_and_flagged() -> None:
    found = tool("set_flag", idempotent=True)
    [guess] = [guess for guess in found.guesses if guess.at == "/semantic/is_idempotent"]
    assert (found.semantic.is_idempotent, guess.risk) == (True, "medium")
    assert not tool("set_flag").semantic.is_idempotent


@pytest.mark.parametrize("name", ["send_mail", "create_order", "pay_invoice"])
def test_hint_does_not_make_a_call_repeatable_that_adds_something_each_time(name: str) -> None:
    found = tool(name, idempotent=True)
    [guess] = [guess for guess in found.guesses if guess.at == "/semantic/is_idempotent"]
    assert not found.semantic.is_idempotent
    assert "although its hints say else" in guess.why


@given(NAMES | st.text(max_size=20), TEXTS, TEXTS, HINTS, HINTS)
def test_changing_operation_is_never_informational(
    name: str, summary: str, description: str, read_only: bool | None, destructive: bool | None
) -> None:
    candidate = Candidate(
        name=name, summary=summary, description=description, read_only=read_only, destructive=destructive
    )
    [found] = judge_all([candidate], CATALOG)
    assert found.method in CATALOG.names
    assert check_path(found.path.path, CATALOG.names) is None
    if any(change_words(candidate)) or destructive or read_only is False:
        assert found.semantic.impact != "informational"


def test_two_tools_with_one_meaning_get_different_places() -> None:
    candidates = [Candidate(name=name) for name in ("get_issue", "fetch_issue", "acme_get_issue")]
    places = {f"{found.method} {found.path.path}" for found in judge_all(candidates, CATALOG)}
    assert len(places) == 3


@pytest.mark.parametrize(
    ("impact", "has_credential", "scopes"),
    [
        ("informational", False, ()),
        ("informational", True, ("acme-rooms:read",)),
        ("reversible", False, ("acme-rooms:write",)),
        ("irreversible", True, ("acme-rooms:write",)),
    ],
)
def test_scope_is_required_except_for_public_reading(
    impact: str, has_credential: bool, scopes: tuple[str, ...]
) -> None:
    chosen, guesses = choose_scopes("Acme Rooms", impact, has_credential=has_credential)
    assert chosen == scopes
    assert len(guesses) == len(scopes)
