"""Calls of skills: what a message may ask for, who confirms it, and how often it is made."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from a2a.helpers.proto_helpers import get_data_parts
from a2a.types import GetTaskRequest, Message, Part, Role, Task, TaskPushNotificationConfig
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from tests.faces.a2a.agent import (
    BOOK,
    FIND,
    OTHER,
    READER,
    RESET,
    VERSIONS,
    calling,
    connected,
    error,
    events,
    message,
    on_http,
    output,
    send,
    state,
    words,
)
from tests.faces.mcp.tools import Rooms
from tests.service import AGENT

from bespeak import Policies
from bespeak.app.server.assembly import Keeper
from bespeak.contract.payments import AccountSettings, PaymentSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, REJECTED, DecideCase, ListCases
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio


async def decide(keeper: Keeper, case_id: str, status: str = ACCEPTED, by: str = "desk") -> Any:
    """Decide a case as `bespeak cases` does."""
    store = keeper.dispatcher.server.store
    assert store is not None
    return await store.do(DecideCase(case_id, status, by, f"att-{case_id}", kinds=(CONFIRMATION,)))


# Reading.


@pytest.mark.parametrize("argument", ["input", "arguments", "parameters", "params"])
@pytest.mark.parametrize("skill", ["skill", "skillId", "skill_id"])
async def test_agents_use_different_names_for_the_same(skill: str, argument: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, message("for the record", {skill: FIND, argument: {"beds": 2}}))
    assert output(task) == {"rooms": ["12"]}


async def test_a_text_that_is_a_data_part_is_one() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, message('{"skill": "query_rooms", "input": {"beds": 2}}'))
    assert output(task) == {"rooms": ["12"]}


async def test_a_caller_that_takes_only_texts_gets_one() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, calling(FIND), accepted_output_modes=["text/plain"])
        other = await send(client, calling(FIND), accepted_output_modes=["application/json", "text/plain"])
    assert task.artifacts[0].parts[0].text == '{"rooms":["12","14"]}'
    assert output(other) == {"rooms": ["12", "14"]}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([{"skill": "book_rooms", "input": {}}], "no skill 'book_rooms'.*perhaps: book_rooms_by_room_id"),
        ([{"skill": "inspect_ledger"}], "no skill"),
        ([{"skill": FIND, "skillId": BOOK}], "skill and skillId"),
        ([{"skill": FIND, "input": {}, "params": {}}], "input and params"),
        ([{"skill": FIND, "beds": 2}], "unknown members: 'beds'"),
        ([{"input": {}}], "does not name a skill"),
        ([{"skill": 7}], "must be the id"),
        ([{"skill": FIND, "input": [1]}], "must be an object"),
        ([{"skill": FIND}, {"skill": BOOK}], "2 data parts"),
    ],
)
async def test_an_ambiguous_message_is_refused(parts: list[Any], reason: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(InvalidParamsError, match=reason):
            await send(client, message(*parts))


@pytest.mark.parametrize("part", [Part(url="http://169.254.169.254/latest"), Part(raw=b"x", media_type="image/png")])
async def test_files_are_neither_read_nor_fetched(part: Part) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(ContentTypeNotSupportedError, match="nothing is fetched"):
            await send(client, message({"skill": FIND}, part))


async def test_push_notifications_are_refused() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(PushNotificationNotSupportedError, match="poll the task"):
            await send(
                client,
                calling(FIND),
                task_push_notification_config=TaskPushNotificationConfig(url="http://169.254.169.254/"),
            )


@pytest.mark.parametrize(
    "fields", [{"role": Role.ROLE_AGENT}, {"message_id": "x" * 257}, {"context_id": "a\x00b"}, {"message_id": ""}]
)
async def test_a_message_with_a_wrong_field_is_refused(fields: dict[str, Any]) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(InvalidParamsError):
            await send(client, calling(FIND, fields))


async def test_a_text_is_answered_with_the_schemas_of_skills_that_fit() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        (answer,) = await events(client, message("which rooms have two beds?", context_id="talk"))
    assert isinstance(answer, Message)
    (data,) = get_data_parts(answer.parts)
    assert (answer.context_id, data["skills"][0]["id"]) == ("talk", FIND)
    assert "beds" in data["skills"][0]["inputSchema"]["properties"]


# Arguments.


async def test_arguments_that_break_the_contract_can_be_corrected() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        wrong = await send(client, calling(FIND, beds="many", floor=2))
        text = await send(client, message("what is wrong?", task_id=wrong.id))
        task = await send(client, message({"input": {"beds": 2}}, task_id=wrong.id))
    assert (state(wrong), state(text), state(task)) == ("input_required", "input_required", "completed")
    assert {violation["pointer"] for violation in error(wrong)["violations"]} == {"", "/beds"}
    assert output(task) == {"rooms": ["12"]}
    assert [each.role for each in task.history].count(Role.ROLE_USER) == 3


async def test_scopes_are_judged_before_arguments() -> None:
    async with on_http(Rooms()) as (url, _), connected(url, headers=READER) as client:
        task = await send(client, calling(BOOK, secret=1))
    assert (state(task), error(task)["missing_scopes"]) == ("auth_required", ["rooms:write"])


# Results.


async def test_a_refusal_of_the_service_rejects_the_task() -> None:
    rooms = Rooms()
    rooms.booked.append("12")
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"])
        task = await send(client, message("go on", task_id=waiting.id))
    assert state(task) == "rejected"
    assert (error(task)["code"], error(task)["details"]) == ("room_unavailable", {"next_free": "14"})


async def test_a_handler_that_fails_fails_the_task_without_its_secrets() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, calling(RESET))
    assert state(task) == "failed"
    assert "secret of the handler" not in str(task)


async def test_calls_and_refusals_are_in_the_audit_trail_without_arguments() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with on_http(Rooms(), document) as (url, keeper), connected(url, headers=READER) as client:
        for sent in (calling(FIND, beds=2), calling(FIND, secret="x"), calling(BOOK, room_id="12")):
            await send(client, sent)
        store = keeper.dispatcher.server.store
        assert store is not None
        records = [payload_of(row[-1]) or {} for row in await store.read(LatestAudit(10))]
    found = sorted((record["face"], record["method"], record["status"]) for record in records)
    assert found == [("a2a", "BOOK", 455), ("a2a", "QUERY", 200), ("a2a", "QUERY", 422)]
    assert "secret" not in str(records)


# Confirmation.


async def test_question_about_a_composite_lists_every_call_or_says_where_they_are() -> None:
    booking = {"method": "BOOK", "path": "/rooms/12"}
    rooms = Rooms(methods=["BATCH"])
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        few = await send(client, calling("batch", calls=[{"method": "QUERY", "path": "/rooms"}, booking]))
        many = await send(client, calling("batch", calls=[booking] * 1000))
        store = keeper.dispatcher.server.store
        assert store is not None
        cases = await store.read(ListCases())
    assert "1. QUERY /rooms: informational\n2. BOOK /rooms/12: irreversible" in words(few)
    assert "too many to show" in words(many)
    assert f"bespeak cases show {cases[1].case_id}" in words(many)
    assert [case.subject.count('"impact"') for case in cases] == [2, 1000]
    assert rooms.booked == []


async def test_purchase_names_its_merchant_before_a_person_is_asked() -> None:
    account = AccountSettings(principal=AGENT, currency="EUR", opening="100.00")
    document = ServerDocument(payments=PaymentSettings(accounts=(account,)))
    order = {"item": "lamp", "principal_id": AGENT, "amount": {"value": "30.00", "currency": "EUR"}}
    buyer = {"Agent-ID": AGENT, "Authority-Scope": "payments:purchase"}
    async with (
        on_http(Rooms(methods=["PURCHASE"]), document) as (url, keeper),
        connected(url, headers=buyer) as client,
    ):
        lacking = await send(client, calling("purchase", **order))
        merchant = error(lacking)["merchant"]
        waiting = await send(client, calling("purchase", {"task_id": lacking.id}, **order, **merchant))
        await decide(keeper, error(waiting)["confirmation_id"])
        bought = await send(client, message("go on", task_id=lacking.id))
    assert (state(lacking), error(lacking)["code"]) == ("input_required", "counterparty-unverified")
    assert (state(waiting), state(bought)) == ("auth_required", "completed")
    assert output(bought)["result"]["status"] == "settled"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_person_confirms_what_cannot_be_undone(version: str) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url, version) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        case_id = error(waiting)["confirmation_id"]
        again = await send(client, message("yes, I confirm", task_id=waiting.id))
        assert rooms.booked == []
        await decide(keeper, case_id)
        task = await send(client, message("go on", task_id=waiting.id))
    assert (state(waiting), state(again), state(task)) == ("auth_required", "auth_required", "completed")
    assert "Reserve a room." in words(waiting)
    assert "- room_id: 12" in words(waiting)
    assert f"`bespeak cases accept {case_id} TARGET`, then send a message with this taskId" in words(waiting)
    assert (rooms.booked, output(task)) == (["12"], {"reservation_id": "r1"})


@pytest.mark.parametrize(
    "data",
    [
        {"skill": BOOK, "input": {"room_id": "12", "confirm": True}},
        {"skill": BOOK, "input": {"room_id": "12"}, "confirm": True},
        {"skill": BOOK, "input": {"room_id": "12", "confirmation_id": "x"}},
    ],
)
async def test_nothing_in_a_message_confirms(data: dict[str, Any]) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, _), connected(url) as client:
        with suppress(InvalidParamsError):
            assert state(await send(client, message(data))) == "input_required"
    assert rooms.booked == []


async def test_a_confirmation_admits_one_call() -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        first, second = [await send(client, calling(BOOK, room_id="12")) for _ in range(2)]
        assert error(first)["confirmation_id"] == error(second)["confirmation_id"]
        await decide(keeper, error(first)["confirmation_id"])
        states = [state(await send(client, message("go on", task_id=task.id))) for task in (first, second)]
    assert states == ["completed", "auth_required"]
    assert rooms.booked == ["12"]


async def test_a_confirmation_is_for_the_arguments_that_were_shown() -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"])
        changed = await send(client, calling(BOOK, {"task_id": waiting.id}, room_id="14"))
    assert (state(changed), rooms.booked) == ("auth_required", [])
    assert error(changed)["confirmation_id"] != error(waiting)["confirmation_id"]


async def test_a_call_that_a_person_rejects_is_not_made() -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"], REJECTED)
        task = await send(client, message("go on", task_id=waiting.id))
        with pytest.raises(UnsupportedOperationError):
            await send(client, message("please", task_id=waiting.id))
    assert (state(task), rooms.booked) == ("rejected", [])


@pytest.mark.parametrize(("status", "told"), [(ACCEPTED, "auth_required"), (REJECTED, "rejected")])
async def test_a_caller_that_polls_hears_of_the_decision(status: str, told: str) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        before = await client.get_task(GetTaskRequest(id=waiting.id))
        await decide(keeper, error(waiting)["confirmation_id"], status)
        after = [await client.get_task(GetTaskRequest(id=waiting.id)) for _ in range(2)]
        assert rooms.booked == []
        if status == ACCEPTED:
            assert state(await send(client, message("go on", task_id=waiting.id))) == "completed"
    assert words(before) == words(waiting)
    assert [state(task) for task in after] == [told, told]
    assert words(after[0]).startswith(f"A person has {status} this call.")
    assert after[0] == after[1]


async def test_the_caller_cannot_confirm_its_own_call() -> None:
    async with on_http(Rooms()) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        found = await decide(keeper, error(waiting)["confirmation_id"], by=OTHER["Agent-ID"].replace("b", "a"))
    assert found == Conflict("own-case")


async def test_a_confirmation_that_the_service_demands_is_asked_for_once() -> None:
    rooms = Rooms(policies=Policies(confirm_irreversible=True))
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        still = await send(client, message("yes", task_id=waiting.id))
        cases = await keeper.dispatcher.server.store.read(ListCases())  # type: ignore[union-attr]
        await decide(keeper, error(waiting)["confirmation_id"])
        task = await send(client, message("go on", task_id=waiting.id))
    assert (state(waiting), state(still), state(task)) == ("auth_required", "auth_required", "completed")
    assert [case.case_id for case in cases] == [error(waiting)["confirmation_id"]]
    assert rooms.booked == ["12"]


async def test_the_same_call_by_a_new_message_finds_the_accepted_confirmation() -> None:
    rooms = Rooms(policies=Policies(confirm_irreversible=True))
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"])
        task = await send(client, calling(BOOK, room_id="12"))
    assert (state(task), rooms.booked) == ("completed", ["12"])


# Repetition.


async def test_a_repeated_message_is_carried_out_once() -> None:
    rooms = Rooms()
    sent = calling(BOOK, room_id="12")
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, sent)
        await decide(keeper, error(waiting)["confirmation_id"])
        tasks = [await send(client, sent) for _ in range(3)]
    assert {task.id for task in tasks} == {waiting.id}
    assert [state(task) for task in tasks] == ["completed"] * 3
    assert rooms.booked == ["12"]


async def test_messages_that_arrive_at_the_same_time_make_one_call() -> None:
    rooms = Rooms()
    sent = calling(FIND)
    async with on_http(rooms) as (url, _), connected(url) as client:
        tasks = await asyncio.gather(*(send(client, sent) for _ in range(5)))
    assert len({task.id for task in tasks}) == 1
    assert {state(task) for task in tasks} == {"completed"}


async def test_a_message_id_is_used_for_one_message() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        await send(client, calling(FIND, {"message_id": "m"}))
        with pytest.raises(InvalidParamsError, match="used for another message"):
            await send(client, calling(FIND, {"message_id": "m"}, beds=2))


async def test_the_message_of_another_caller_is_another_one() -> None:
    async with on_http(Rooms()) as (url, _):
        async with connected(url) as client:
            own = await send(client, calling(FIND, {"message_id": "m"}))
        async with connected(url, headers=OTHER) as client:
            other = await send(client, calling(FIND, {"message_id": "m"}))
    assert own.id != other.id


async def test_a_method_that_takes_a_key_of_its_caller_keeps_it() -> None:
    rooms = Rooms()

    @rooms.app.endpoint("EXECUTE", "/cleaning", impact="reversible")
    def clean(idempotency_key: str) -> dict[str, str]:
        """Clean the rooms.

        Outcome: The rooms are clean.
        """
        return {"key": idempotency_key}

    async with on_http(rooms) as (url, _), connected(url) as client:
        task = await send(client, calling("execute_cleaning", idempotency_key="k"))
    assert output(task) == {"key": "k"}


@pytest.mark.parametrize("task_id", ["unknown", "a\x00b", "x" * 300])
async def test_a_message_for_a_task_that_is_not_there_is_refused(task_id: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises((TaskNotFoundError, InvalidParamsError)):
            await send(client, message("go on", task_id=task_id))


async def test_a_message_for_a_task_in_another_context_is_refused() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        with pytest.raises(InvalidParamsError, match="contextId"):
            await send(client, message("go on", task_id=waiting.id, context_id="other"))


async def test_tasks_of_one_caller_are_bounded() -> None:
    async with on_http(Rooms(), most_tasks=2) as (url, _), connected(url) as client:
        open_ = await send(client, calling(BOOK, room_id="12"))
        finished = [await send(client, calling(FIND)) for _ in range(3)]
        assert all(isinstance(task, Task) for task in finished)
        await send(client, calling(BOOK, room_id="14"))
        with pytest.raises(Exception, match="429"):
            await send(client, calling(BOOK, room_id="16"))
        assert state(open_) == "auth_required"
