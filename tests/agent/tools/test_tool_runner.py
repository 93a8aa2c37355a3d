"""Calls of a model: arguments, authority, agreement, repetition, refusals."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.agent.client.faces import FACES, Face, talking
from tests.agent.tools.test_tool_list import app
from tests.cases import rows
from tests.faces.mcp.tools import endpoint
from tests.service import AGENT

import bespeak
from bespeak.agent.client.called_service import CalledService
from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import UnreachableError
from bespeak.agent.tools.tool_runner import Confirm, Question, ToolRunner, ToolService, framework_needed, run_tool
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.projections.model_tools.tools import make_model_tools
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Outcome

pytestmark = pytest.mark.anyio
ROOM = {
    "type": "object",
    "properties": {"room_id": {"type": "string"}, "beds": {"type": "integer"}},
    "required": ["room_id"],
}
FIND = endpoint("FIND", "/rooms", input_schema=ROOM)
BOOK = endpoint("BOOK", "/rooms", input_schema=ROOM, impact="irreversible", intent="Reserve a room.")
RENAME = endpoint("UPDATE", "/rooms", input_schema=ROOM, impact="reversible")
TAGS = endpoint(
    "TAG",
    "/rooms",
    input_schema={
        "type": "object",
        "properties": {"tags": {"type": "object", "additionalProperties": {"type": "string"}}},
    },
)
METHODS = sorted(name for name, value in vars(ToolService).items() if inspect.isfunction(value) and name[0] != "_")


class Recorded:
    """A service that notes its calls."""

    def __init__(self, *endpoints: Endpoint, missing: Sequence[str] = (), confirmed: bool = False) -> None:
        self.offered: Sequence[Endpoint] = endpoints
        self.calls: list[tuple[str, Mapping[str, Any], Mapping[str, str]]] = []
        self.refreshed = 0
        self.outcomes: list[Outcome] = []
        self._missing, self._confirmed = list(missing), confirmed

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        self.refreshed += refresh
        return self.offered

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        return self._confirmed

    def lacking(self, endpoint: Endpoint) -> list[str]:
        return self._missing

    async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        self.calls.append((str(endpoint), arguments, headers))
        return self.outcomes.pop(0) if self.outcomes else Outcome(200, {"done": True})


def call(name: str, arguments: Any, call_id: str | None = "call_1") -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "id": call_id}


def error(message: dict[str, Any]) -> dict[str, Any]:
    assert message["is_error"], message
    found: dict[str, Any] = msgspec.json.decode(message["content"])["error"]
    assert found["remedy"]
    return found


def agree(_: Question) -> bool:
    return True


async def run(service: Recorded, *given: Any, confirm: Confirm | None = None, **options: Any) -> dict[str, Any]:
    return await ToolRunner(service, "openai", confirm=confirm, **options).run(call(*given))


async def test_arguments_are_converted_back_or_refused_before_the_call() -> None:
    service = Recorded(TAGS, FIND)
    await run(service, "tag_rooms", {"tags": [{"key": "view", "value": "sea"}]})
    await run(service, "find_rooms", '{"room_id": "12", "beds": null}')
    assert [arguments for _, arguments, _ in service.calls] == [{"tags": {"view": "sea"}}, {"room_id": "12"}]
    arguments: dict[str, Any] = {"room_id": "1"}
    arguments["more"] = arguments
    assert error(await run(Recorded(FIND), "find_rooms", arguments))["code"] == "invalid-arguments"
    pair = {"key": "view", "value": "sea"}
    found = error(await run(Recorded(TAGS), "tag_rooms", {"tags": [pair, pair]}))
    expected = ("invalid-arguments", "The arguments are not usable: 'view' is given twice.")
    assert (found["code"], found["message"]) == expected


@rows(
    "arguments, message",
    *[(arguments, "not valid JSON") for arguments in ("{", '{"room_id": NaN}', "[" * 100_000, "\ud800", b"\xff")],
    *[(arguments, "not valid JSON") for arguments in ({"beds": 10**5000}, '{"beds": ' + "1" * 5000 + "}")],
    *[(arguments, "not valid JSON") for arguments in ({"room_id": object()}, {"room_id": "\ud800"})],
    ('{"room_id": "1", "room_id": "2"}', "the key 'room_id' is repeated"),
    ("[1]", "must be an object; got [1]"),
    ("3", "must be an object; got 3"),
    ('"' + "x" * 1_000_001 + '"', "more than 1,000,000"),
    ([1], "must be an object"),
    (True, "must be an object"),
    ({"room_id": float("nan")}, "nan is not a JSON number"),
    ({"room_id": float("inf")}, "inf is not a JSON number"),
    ({"room_id": 2**80}, 'is not of type "string"'),
    ({"room_id": {1: 2}}, 'is not of type "string"'),
)
async def test_arguments_that_are_not_usable_are_refused(arguments: Any, message: str) -> None:
    service = Recorded(FIND)
    found = error(await run(service, "find_rooms", arguments))
    assert message in found["message"]
    assert len(found["message"]) < 500
    assert service.calls == []


@pytest.mark.parametrize("arguments", [{}, {"room_id": 3}, {"room_id": "1", "view": "sea"}])
async def test_arguments_are_held_against_the_contract_before_anything_is_sent(arguments: dict[str, Any]) -> None:
    service = Recorded(FIND)
    found = error(await run(service, "find_rooms", arguments))
    assert found["code"] == "input-validation-failed"
    assert found["remedy"] == "Correct the arguments and call again. They are: room_id, beds."
    assert service.calls == []


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("find_room", "Call one of these instead: find_rooms."), ("x" * 5_000, "Call only the tools that are listed.")],
)
async def test_a_tool_that_the_model_invents_is_refused(name: str, remedy: str) -> None:
    service = Recorded(FIND)
    found = error(await run(service, name, {}))
    assert (found["code"], found["remedy"]) == ("unknown-tool", remedy)
    assert len(found["message"]) < 200
    assert service.refreshed == 1


async def test_offered_tools_are_called_and_calls_of_any_shape_answered_in_it() -> None:
    service = Recorded(FIND)
    runner = ToolRunner(service, "openai")
    await runner.run(call("find_rooms", {"room_id": "1"}))
    service.offered = (FIND, RENAME)
    assert not (await runner.run(call("update_rooms", {"room_id": "1"})))["is_error"]
    service = Recorded(FIND, RENAME)
    offered = make_model_tools([FIND, RENAME], "openai", chosen=[FIND.key])
    assert error(await run(service, "update_rooms", {"room_id": "1"}, tools=offered))["code"] == "unknown-tool"
    service = Recorded(FIND)
    block = {"type": "tool_use", "id": "t1", "name": "find_rooms", "input": {"room_id": "1"}}
    assert await run_tool(service, block) == {"type": "tool_result", "tool_use_id": "t1", "content": '{"done":true}'}
    assert (await run_tool(service, call("find_rooms", {"room_id": "1"})))["name"] == "find_rooms"
    with pytest.raises(ConfigError, match="is not a tool call"):
        await run_tool(service, {"type": "text"})


async def test_a_call_that_changes_something_has_a_key_from_its_id() -> None:
    service = Recorded(FIND, RENAME)
    calls = [
        ("find_rooms", {"room_id": "1"}, "call_1"),
        ("update_rooms", {"room_id": "1"}, "call_1"),
        ("update_rooms", {"room_id": "1"}, "call_1"),
        ("update_rooms", {"room_id": "2"}, "call_1"),
        ("update_rooms", {"room_id": "1"}, "call_2"),
        ("update_rooms", {"room_id": "1"}, None),
    ]
    for one in calls:
        await run(service, *one)
    await run(service, *calls[1], conversation="another")
    keys = [headers.get("idempotency-key") for _, _, headers in service.calls]
    assert keys[0] is None
    assert keys[1] == keys[2]
    assert keys[5] is None
    assert len({keys[1], keys[3], keys[4], keys[6]}) == 4


async def test_question_about_a_composite_lists_every_call_or_is_not_asked() -> None:
    asked: list[str] = []

    def person(question: Question) -> bool:
        asked.append(question.text)
        return True

    batch, retry = (
        endpoint(
            name,
            "/",
            impact="irreversible",
            input_schema={"type": "object", "properties": dict(STANDARD[name].parameters)},
            tool=name.lower(),
        )
        for name in ("BATCH", "RETRY")
    )
    service, made = Recorded(FIND, BOOK, batch, retry), {"method": "BOOK", "path": "/rooms"}
    await run(service, "batch", {"calls": [{"method": "FIND", "path": "/rooms"}, made]}, confirm=person)
    long = error(await run(service, "batch", {"calls": [made] * 1000}, confirm=person))
    unknown = error(await run(service, "retry", {"original_task_id": "t"}, confirm=person))
    assert "1. FIND /rooms: informational\n2. BOOK /rooms: irreversible" in asked[0]
    assert (len(asked), len(service.calls)) == (1, 1)
    assert (long["code"], unknown["code"]) == ("too-long-to-show", "calls-not-listed")


@pytest.mark.parametrize("answer", [..., False, None, "yes", 1])
async def test_only_the_yes_of_a_person_lets_a_call_run_that_cannot_be_undone(answer: Any) -> None:
    service, confirm = Recorded(BOOK), None if answer is ... else lambda _: answer
    found = error(await run(service, "book_rooms", {"room_id": "1"}, confirm=confirm))
    assert found["code"] == ("confirmation-required" if confirm is None else "confirmation-declined")
    assert confirm is not None or "confirm=" in found["remedy"]
    assert service.calls == []


async def test_a_person_is_asked_with_the_words_of_the_contract_in_a_thread_of_its_own() -> None:
    asked: list[Question] = []

    async def confirm(question: Question) -> bool:
        asked.append(question)
        return True

    service = Recorded(BOOK)
    message = await run(service, "book_rooms", {"room_id": "12", "beds": None}, confirm=confirm)
    assert not message["is_error"]
    assert (asked[0].tool, asked[0].arguments) == ("book_rooms", {"room_id": "12"})
    assert str(asked[0]).split("\n") == [
        *("Reserve a room.", "The rooms are returned.", "This cannot be undone.", "- room_id: 12")
    ]
    threads: list[int] = []

    class Asker:
        async def __call__(self, _: Question) -> bool:
            return True

    def confirm(_: Question) -> bool:
        threads.append(threading.get_ident())
        return True

    await run(Recorded(BOOK), "book_rooms", {"room_id": "1"}, confirm=confirm)
    assert threads != [threading.get_ident()]
    assert not (await run(Recorded(BOOK), "book_rooms", {"room_id": "1"}, confirm=Asker()))["is_error"]


async def test_questions_are_asked_one_after_the_other_and_a_fault_of_asking_is_not_hidden() -> None:
    open_questions, most = 0, 0

    async def confirm(_: Question) -> bool:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await asyncio.sleep(0)
        open_questions -= 1
        return True

    runner = ToolRunner(Recorded(BOOK), "openai", confirm=confirm)
    await runner.run_all([call("book_rooms", {"room_id": str(number)}) for number in range(5)])
    assert most == 1
    service = Recorded(BOOK)

    def confirm(_: Question) -> bool:
        raise LookupError("no terminal")

    with pytest.raises(LookupError, match="no terminal"):
        await run(service, "book_rooms", {"room_id": "1"}, confirm=confirm)
    assert service.calls == []


async def test_no_person_is_asked_where_the_call_would_be_refused_or_another_party_decides() -> None:
    def never(_: Question) -> bool:
        raise AssertionError

    lacking = error(await run(Recorded(BOOK, missing=["a:b"]), "book_rooms", {"room_id": "1"}, confirm=never))
    assert (lacking["code"], lacking["missing_scopes"]) == ("scope-violation", ["a:b"])
    assert "bespeak.connect(..., scopes=['a:b'])" in lacking["remedy"]
    for service in (
        Recorded(BOOK, confirmed=True),
        Recorded(endpoint("BOOK", "/rooms", impact="irreversible", confirm=False, input_schema=ROOM)),
    ):
        assert not (await run(service, "book_rooms", {"room_id": "1"}, confirm=never))["is_error"]


async def test_a_call_that_another_party_has_confirmed_is_repeated_with_the_confirmation() -> None:
    service = Recorded(RENAME)
    waiting = {"code": "confirmation-required", "message": "Wait.", "confirmation_id": "conf-1"}
    service.outcomes = [Outcome(262, error=waiting)]
    assert "another party" in error(await run(service, "update_rooms", {"room_id": "1"}))["remedy"]
    service.outcomes = [Outcome(262, error={**waiting, "confirmation_status": "accepted"})]
    assert not (await run(service, "update_rooms", {"room_id": "1"}))["is_error"]
    assert service.calls[-1][2]["Confirmation-ID"] == "conf-1"


async def test_calls_of_one_message_run_at_the_same_time_and_answer_in_order() -> None:
    class Waiting(Recorded):
        async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
            self.calls.append((str(endpoint), arguments, headers))
            while len(self.calls) < 3:
                await asyncio.sleep(0)
            return Outcome(200, arguments)

    calls = [call("find_rooms", {"room_id": str(number)}, f"call_{number}") for number in range(3)]
    done = await ToolRunner(Waiting(FIND), "openai").run_all(calls)
    assert [message["id"] for message in done] == ["call_0", "call_1", "call_2"]
    assert [json.loads(message["content"])["room_id"] for message in done] == ["0", "1", "2"]


async def test_calls_of_one_message_and_their_results_are_bounded() -> None:
    service = Recorded(FIND)
    done = await ToolRunner(service, "openai").run_all([call("find_rooms", {"room_id": "1"})] * 130)
    assert (len(done), len(service.calls)) == (130, 128)
    assert "too-many-calls" in done[-1]["content"]
    service = Recorded(FIND)
    service.outcomes = [Outcome(200, {"rooms": list(range(5_000))}), Outcome(200, {"rooms": list(range(5_000))})]
    whole = await run(service, "find_rooms", {"room_id": "1"})
    part = await run(service, "find_rooms", {"room_id": "1"}, max_result=1_000)
    assert "partial_result" not in whole["content"]
    assert len(part["content"]) <= 1_000
    with pytest.raises(ConfigError, match="max_result must be at least 1,000; got 10"):
        await run(service, "find_rooms", {}, max_result=10)


@asynccontextmanager
async def live(face: Face, **options: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with talking(face, agent_id=AGENT, **options) as (service, place):
        yield service, place.rooms


@pytest.mark.parametrize("face", FACES)
async def test_a_retried_conversation_does_not_book_twice(face: Face) -> None:
    async with live(face) as (service, rooms):
        booking = {
            "id": "call_7",
            "type": "function",
            "function": {"name": "book_room", "arguments": '{"room_id":"12"}'},
        }
        first = await service.run_tool(booking, confirm=agree)
        again = await service.run_tool(booking, confirm=agree)
        at_once = await (await service.tools(confirm=agree)).run_all({"tool_calls": [booking, booking]})
        assert first == again == at_once[0] == at_once[1]
        assert rooms.booked == 1
        await service.run_tool({**booking, "id": "call_8"}, confirm=agree)
        assert rooms.booked == 2


@pytest.mark.parametrize("face", FACES)
async def test_refusals_of_a_service_say_what_to_do(face: Face) -> None:
    async with live(face) as (service, rooms):
        taken = error(await service.run_tool(call("book_room", {"room_id": "taken"}), confirm=agree))
        assert (taken["code"], taken["details"]) == ("room_unavailable", {"next_free": "2027-01-01"})
        missing = error(await service.run_tool(call("cancel_room", {"room_id": "1"})))
        assert "room:cancel" in missing["remedy"]
        assert rooms.booked == 0


@pytest.mark.parametrize("style", ["openai", "gemini"])
async def test_a_service_that_cannot_be_reached_is_a_result(style: str, unused_port: int) -> None:
    async with connect(f"agtp://127.0.0.1:{unused_port}") as service:
        found = error(await service.run_tool(call("find_rooms", {"room_id": "1"})))
        assert found["code"] == "service-not-reached"
        with pytest.raises(UnreachableError):
            await service.tools(style)


@rows(
    "style, module, package",
    ("langchain", "langchain_core", "langchain-core"),
    ("openai-agents", "agents", "openai-agents"),
    ("pydantic-ai", "pydantic_ai", "pydantic-ai-slim"),
)
async def test_missing_package_is_named(style: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type] # how Python marks a missing module
    async with bespeak.connect(app) as service:
        with pytest.raises(ConfigError, match=f"need the package {package}: pip install {package}"):
            await service.tools(style)


def test_another_missing_module_is_not_blamed_on_the_framework() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), framework_needed("agents", "openai-agents"):
        import no_such_module  # type: ignore[import-not-found] # noqa: F401 - it does not exist


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_called_as_the_boundary_says(method: str) -> None:
    asked, offered = getattr(ToolService, method), getattr(CalledService, method)
    assert inspect.signature(asked).parameters.keys() == inspect.signature(offered).parameters.keys()
    assert inspect.iscoroutinefunction(asked) is inspect.iscoroutinefunction(offered)
