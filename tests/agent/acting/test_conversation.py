"""Conversations: what was said before is remembered, and nothing is called that was not agreed to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.agent.acting.hotel import NOW, Desk, contract, hotel, served
from tests.agent.client.scripted import Seen, serving, write

from bespeak import App
from bespeak.agent.acting.conversation import Conversation, Turn
from bespeak.agent.acting.decision import ActingRules
from bespeak.app.server.agent import Agent

pytestmark = pytest.mark.anyio

# The match is not what is tested: every endpoint may be called that is the best.
EASY = ActingRules(match_at=0, read_at=0, choice_at=0)


async def talk(desk: Desk, *lines: str, by_person: bool = True, rules: ActingRules = EASY) -> list[Turn]:
    async with Agent([hotel(desk)], now=NOW, rules=rules) as agent:
        conversation = Conversation(agent)
        return [await conversation.say(line, by_person=by_person) for line in lines]


async def test_item_of_the_last_answer_fills_the_next_call_and_yes_makes_it() -> None:
    desk = Desk()
    found, shown, done = await talk(desk, "find rooms with 2 beds", "book the second one for 3 nights", "yes")
    assert found.acted is not None
    assert found.acted.ok
    assert "- room_id: 102" in shown.text
    assert shown.needs_person
    assert done.acted is not None
    assert desk.done == [("find", {"beds": 2}), ("book", {"room_id": "102", "nights": 3})]


async def test_what_is_missing_is_asked_for_and_the_answer_may_be_short() -> None:
    desk = Desk()
    turns = await talk(desk, "book a room", "12", "for two nights", "ok")
    assert [turn.text.splitlines()[0] for turn in turns[:2]] == ["room id?", "nights?"]
    assert desk.done == [("book", {"room_id": "12", "nights": 2})]


async def test_later_words_change_what_was_said_before() -> None:
    desk = Desk()
    await talk(desk, "find rooms with 2 beds", "and with 3 beds")
    assert desk.done == [("find", {"beds": 2}), ("find", {"beds": 3})]


async def test_no_calls_nothing_and_ends_the_question() -> None:
    desk = Desk()
    turns = await talk(desk, "book room 101 for 2 nights", "no", "yes")
    assert turns[1].text == "Nothing was called."
    assert desk.done == []


async def test_new_instruction_leaves_an_open_question() -> None:
    desk = Desk()
    rules = ActingRules(match_at=0, read_at=0, choice_at=0)
    turns = await talk(desk, "book a room", "find rooms with 4 beds", rules=rules)
    assert turns[0].decision is not None
    assert desk.done == [("find", {"beds": 4})]


async def test_yes_of_a_program_agrees_to_nothing_that_needs_a_person() -> None:
    desk = Desk()
    turns = await talk(desk, "book room 101 for 2 nights", "yes", by_person=False)
    assert "Only a person" in turns[1].text
    assert desk.done == []


async def test_yes_of_a_program_agrees_to_no_change_either() -> None:
    desk = Desk()
    rules = ActingRules(match_at=0, change_at=1)
    turns = await talk(desk, "modify the wake-up call of room 101", "yes", by_person=False, rules=rules)
    assert (turns[0].needs_person, "Only a person" in turns[1].text, desk.done) == (False, True, [])


async def test_yes_without_a_question_and_empty_lines_do_nothing() -> None:
    desk = Desk()
    turns = await talk(desk, "yes", "", "the seventh one", rules=ActingRules())
    assert [turn.acted.ok for turn in turns if turn.acted] in ([False], [False, False])
    assert desk.done == []


def kennel(desk: Desk, *verbs: str) -> App:
    app = App("Kennel", server_id="kennel.example", operator="Kennel", contact="desk@kennel.example")

    for verb in verbs:

        @app.endpoint(verb, "/dog", impact="reversible", confidence=0.95)
        def change(room_id: str) -> dict[str, str]:
            """Change where a dog sleeps.

            Outcome: The dog sleeps elsewhere.
            """
            desk.note("dog", room_id=room_id)
            return {"room_id": room_id}

    return app


async def test_value_of_another_service_that_was_shown_is_asked_about() -> None:
    desk = Desk()
    rules = replace(EASY, change_at=0.85, argument_at=0.7)
    async with Agent({"hotel": hotel(desk), "kennel": kennel(desk, "MODIFY")}, now=NOW, rules=rules) as agent:
        conversation = Conversation(agent)
        await conversation.say("find rooms with 2 beds")
        [place] = agent.service_map.find("MODIFY", "/dog")
        decided = await agent.decide("modify the second one", place=place)
        picked = conversation._pick("modify the second one", decided)
    assert (picked["room_id"].value, picked["room_id"].confidence < rules.argument_at) == ("102", True)


async def test_yes_to_one_contract_is_none_to_the_next_and_that_one_is_shown() -> None:
    book = contract("BOOK", "/room", impact="irreversible", intent="Book a room.")
    dearer = {**book, "description": "Book a room that costs more."}
    dearer["semantic"] = {**book["semantic"], "intent": "Book a room that costs more."}
    waiting = [served(book), served(dearer)]

    def script(seen: Seen, writer: asyncio.StreamWriter) -> Any:
        if " DISCOVER " in seen.line:
            current = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return write(writer, 200, current, ETag=f'"{len(waiting)}{current is waiting[0]}"')
        return write(writer, 200, {})

    async with serving(script) as server, Agent([server.uri], now=NOW, rules=EASY) as agent:
        conversation = Conversation(agent)
        turns = [await conversation.say(line) for line in ("book a room", "yes", "yes")]
        called = [seen.line for seen in server.seen if "BOOK" in seen.line]
    assert ["costs more" in turn.text for turn in turns] == [False, True, False]
    assert "This cannot be undone." in turns[1].text
    assert (turns[1].acted, turns[2].acted is not None, len(called)) == (None, True, 1)


async def test_more_arguments_do_not_choose_between_endpoints() -> None:
    desk = Desk()
    rules = ActingRules(match_at=0, read_at=0, change_at=0, argument_at=0)
    async with Agent([kennel(desk, "MODIFY", "UPDATE")], now=NOW, rules=rules) as agent:
        conversation = Conversation(agent)
        first = await conversation.say("change the dog of room 101")
        second = await conversation.say("and for room 102")
        chosen = await conversation.say("1")
    assert [turn.text.split("\n")[0] for turn in (first, second)] == ["Which of these is meant?"] * 2
    assert chosen.acted is not None
    assert desk.done == [("dog", {"room_id": "102"})]


async def test_call_that_is_too_long_to_be_shown_is_not_agreed_to() -> None:
    desk = Desk()
    async with Agent([hotel(desk)], now=NOW, rules=EASY) as agent:
        conversation = Conversation(agent)
        decided = await agent.decide("book room 101 for 2 nights")
        assert decided.verdict == "confirm"
        shown = await conversation._next(replace(decided, notes=("n" * 300,) * 100))
        await conversation.say("yes")
    assert "cannot be shown" in shown.text
    assert desk.done == []
