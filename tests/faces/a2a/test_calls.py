"""Calls of skills: what a message may ask for, who confirms it, and how often it is made."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from a2a.helpers.proto_helpers import get_data_parts
from a2a.types import GetTaskRequest, Message, Part, Role, Task, TaskPushNotificationConfig
from a2a.utils import errors
from tests.cases import rows
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
from tests.service import AGENT, build

from bespeak import Policies
from bespeak.app.server.assembly import Keeper
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.payments.settings import AccountSettings, PaymentSettings
from bespeak.faces.a2a.calls import Caller
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, parties_of
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, REJECTED, DecideCase, ListCases
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio
CALLED = {"beds": 2}
FILES = (Part(url="http://169.254.169.254/latest"), Part(raw=b"x", media_type="image/png"))
PUSH = {"task_push_notification_config": TaskPushNotificationConfig(url="http://169.254.169.254/")}
WRONG = ({"role": Role.ROLE_AGENT}, {"message_id": "x" * 257}, {"context_id": "a\x00b"}, {"message_id": ""})


async def decide(keeper: Keeper, case_id: str, status: str = ACCEPTED, by: str = "desk") -> Any:
    """Decide a case as `bespeak cases` does."""
    store = keeper.dispatcher.server.store
    return await store.do(DecideCase(case_id, status, by, f"att-{case_id}", kinds=(CONFIRMATION,)))


# Reading.


@rows(
    "parts",
    *[("for the record", {"skill": FIND, name: CALLED}) for name in ("input", "arguments", "parameters", "params")],
    *[("for the record", {name: FIND, "input": CALLED}) for name in ("skillId", "skill_id")],
    ('{"skill": "query_rooms", "input": {"beds": 2}}',),
)
async def test_agents_use_different_forms_for_the_same(parts: tuple[Any, ...]) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, message(*parts))
    assert output(task) == {"rooms": ["12"]}


async def test_a_caller_that_takes_only_texts_gets_one_and_can_correct_its_arguments() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        task = await send(client, calling(FIND), accepted_output_modes=["text/plain"])
        other = await send(client, calling(FIND), accepted_output_modes=["application/json", "text/plain"])
        assert task.artifacts[0].parts[0].text == '{"rooms":["12","14"]}'
        assert output(other) == {"rooms": ["12", "14"]}
        wrong = await send(client, calling(FIND, beds="many", floor=2))
        text = await send(client, message("what is wrong?", task_id=wrong.id))
        task = await send(client, message({"input": {"beds": 2}}, task_id=wrong.id))
    assert (state(wrong), state(text), state(task)) == ("input_required", "input_required", "completed")
    assert {violation["pointer"] for violation in error(wrong)["violations"]} == {"", "/beds"}
    assert output(task) == {"rooms": ["12"]}
    assert [each.role for each in task.history].count(Role.ROLE_USER) == 3


@rows(
    "parts, reason",
    ([{"skill": "book_rooms", "input": {}}], "no skill 'book_rooms'.*perhaps: book_rooms_by_room_id"),
    ([{"skill": "inspect_ledger"}], "no skill"),
    ([{"skill": FIND, "skillId": BOOK}], "skill and skillId"),
    ([{"skill": FIND, "input": {}, "params": {}}], "input and params"),
    ([{"skill": FIND, "beds": 2}], "unknown members: 'beds'"),
    ([{"input": {}}], "does not name a skill"),
    ([{"skill": 7}], "must be the id"),
    ([{"skill": FIND, "input": [1]}], "must be an object"),
    ([{"skill": FIND}, {"skill": BOOK}], "2 data parts"),
)
async def test_an_ambiguous_message_is_refused(parts: list[Any], reason: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(errors.InvalidParamsError, match=reason):
            await send(client, message(*parts))


@rows(
    "sent, options, kind, reason",
    *[
        (message({"skill": FIND}, part), {}, errors.ContentTypeNotSupportedError, "nothing is fetched")
        for part in FILES
    ],
    (calling(FIND), PUSH, errors.PushNotificationNotSupportedError, "poll the task"),
    *[(calling(FIND, fields), {}, errors.InvalidParamsError, None) for fields in WRONG],
)
async def test_files_push_notifications_and_wrong_fields_are_refused(
    sent: Message, options: Any, kind: type[Exception], reason: str | None
) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises(kind, match=reason):
            await send(client, sent, **options)


async def test_a_text_is_answered_with_fitting_skills_and_a_failure_hides_its_secrets() -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        (answer,) = await events(client, message("which rooms have two beds?", context_id="talk"))
        task = await send(client, calling(RESET))
    assert isinstance(answer, Message)
    (data,) = get_data_parts(answer.parts)
    assert (answer.context_id, data["skills"][0]["id"]) == ("talk", FIND)
    assert "beds" in data["skills"][0]["inputSchema"]["properties"]
    assert state(task) == "failed"
    assert "secret of the handler" not in str(task)


# Arguments.


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


async def test_calls_and_refusals_are_in_the_audit_trail_without_arguments() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with on_http(Rooms(), document) as (url, keeper), connected(url, headers=READER) as client:
        for sent in (calling(FIND, beds=2), calling(FIND, secret="x"), calling(BOOK, room_id="12")):
            await send(client, sent)
        store = keeper.dispatcher.server.store
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
        cases = await store.read(ListCases())
    assert "1. QUERY /rooms: informational\n2. BOOK /rooms/12: irreversible" in words(few)
    assert "too many to show" in words(many)
    assert f"bespeak cases show {cases[1].case_id}" in words(many)
    assert [case.subject.count('"impact"') for case in cases] == [2, 1000]
    assert rooms.booked == []


async def test_purchase_names_its_merchant_before_a_person_is_asked() -> None:
    account = AccountSettings(principal=AGENT, currency="EUR", opening="100.00")
    document = ServerDocument(extension_tables={"payments": PaymentSettings(accounts=(account,))})
    order = {"item": "lamp", "principal_id": AGENT, "amount": {"value": "30.00", "currency": "EUR"}}
    buyer = {"Agent-ID": AGENT, "Authority-Scope": "payments:purchase"}
    async with on_http(Rooms(methods=["PURCHASE"]), document) as (url, keeper), connected(url, headers=buyer) as client:
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


@rows(
    "data",
    {"skill": BOOK, "input": {"room_id": "12", "confirm": True}},
    {"skill": BOOK, "input": {"room_id": "12"}, "confirm": True},
    {"skill": BOOK, "input": {"room_id": "12", "confirmation_id": "x"}},
)
async def test_nothing_in_a_message_confirms(data: dict[str, Any]) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, _), connected(url) as client:
        with suppress(errors.InvalidParamsError):
            assert state(await send(client, message(data))) == "input_required"
    assert rooms.booked == []


async def test_a_confirmation_admits_one_call_with_the_arguments_that_were_shown() -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        first, second = [await send(client, calling(BOOK, room_id="12")) for _ in range(2)]
        assert error(first)["confirmation_id"] == error(second)["confirmation_id"]
        await decide(keeper, error(first)["confirmation_id"])
        states = [state(await send(client, message("go on", task_id=task.id))) for task in (first, second)]
    assert states == ["completed", "auth_required"]
    assert rooms.booked == ["12"]
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"])
        changed = await send(client, calling(BOOK, {"task_id": waiting.id}, room_id="14"))
    assert (state(changed), rooms.booked) == ("auth_required", [])
    assert error(changed)["confirmation_id"] != error(waiting)["confirmation_id"]
    rooms = Rooms()
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"], REJECTED)
        task = await send(client, message("go on", task_id=waiting.id))
        with pytest.raises(errors.UnsupportedOperationError):
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


async def test_a_caller_cannot_confirm_its_own_call_nor_use_another_context() -> None:
    async with on_http(Rooms()) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        found = await decide(keeper, error(waiting)["confirmation_id"], by=OTHER["Agent-ID"].replace("b", "a"))
    assert found == Conflict("own-case")
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        with pytest.raises(errors.InvalidParamsError, match="contextId"):
            await send(client, message("go on", task_id=waiting.id, context_id="other"))


async def test_a_demanded_confirmation_is_asked_for_once_and_found_by_the_same_call() -> None:
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
    rooms = Rooms(policies=Policies(confirm_irreversible=True))
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, calling(BOOK, room_id="12"))
        await decide(keeper, error(waiting)["confirmation_id"])
        task = await send(client, calling(BOOK, room_id="12"))
    assert (state(task), rooms.booked) == ("completed", ["12"])


# Repetition.


async def test_a_message_carries_out_its_call_once_even_if_repeated_at_the_same_time() -> None:
    rooms = Rooms()
    sent = calling(BOOK, room_id="12")
    async with on_http(rooms) as (url, keeper), connected(url) as client:
        waiting = await send(client, sent)
        await decide(keeper, error(waiting)["confirmation_id"])
        tasks = [await send(client, sent) for _ in range(3)]
    assert {task.id for task in tasks} == {waiting.id}
    assert [state(task) for task in tasks] == ["completed"] * 3
    assert rooms.booked == ["12"]
    rooms = Rooms()
    sent = calling(FIND)
    async with on_http(rooms) as (url, _), connected(url) as client:
        tasks = await asyncio.gather(*(send(client, sent) for _ in range(5)))
    assert len({task.id for task in tasks}) == 1
    assert {state(task) for task in tasks} == {"completed"}


async def test_message_ids_and_idempotency_keys_of_callers_are_kept_to() -> None:
    async with on_http(Rooms()) as (url, _):
        async with connected(url) as client:
            own = await send(client, calling(FIND, {"message_id": "m"}))
        async with connected(url, headers=OTHER) as client:
            other = await send(client, calling(FIND, {"message_id": "m"}))
    assert own.id != other.id
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        await send(client, calling(FIND, {"message_id": "m"}))
        with pytest.raises(errors.InvalidParamsError, match="used for another message"):
            await send(client, calling(FIND, {"message_id": "m"}, beds=2))
    rooms = Rooms()

    @rooms.app.endpoint("EXECUTE", "/cleaning", impact="reversible", outcome="The rooms are clean.")
    def clean(idempotency_key: str) -> dict[str, str]:
        """Clean the rooms."""
        return {"key": idempotency_key}

    async with on_http(rooms) as (url, _), connected(url) as client:
        task = await send(client, calling("execute_cleaning", idempotency_key="k"))
    assert output(task) == {"key": "k"}


@pytest.mark.parametrize("task_id", ["unknown", "a\x00b", "x" * 300])
async def test_a_message_for_a_task_that_is_not_there_is_refused(task_id: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url) as client:
        with pytest.raises((errors.TaskNotFoundError, errors.InvalidParamsError)):
            await send(client, message("go on", task_id=task_id))


async def test_tasks_of_one_caller_are_bounded() -> None:
    async with on_http(Rooms(), most_tasks=2) as (url, _), connected(url) as client:
        open_ = await send(client, calling(BOOK, room_id="12"))
        finished = [await send(client, calling(FIND)) for _ in range(3)]
        assert all(isinstance(task, Task) for task in finished)
        await send(client, calling(BOOK, room_id="14"))
        with pytest.raises(Exception, match="429"):
            await send(client, calling(BOOK, room_id="16"))
        assert state(open_) == "auth_required"


def caller(principal: Principal) -> Caller:
    call = Call(Request("DISCOVER", "/", "", {}, b"", Connection(address="192.0.2.7")), build().server)
    call.principal = principal
    return Caller(None, call)


@rows("principal, owner, known", (Principal(agent_id=AGENT), AGENT, True), (ANONYMOUS, "anonymous 192.0.2.7", False))
def test_tasks_belong_to_the_agent_or_to_an_address(principal: Principal, owner: str, known: bool) -> None:
    found = caller(principal)
    assert (found.owner, found.is_known) == (owner, known)


def test_everyone_behind_a_call_is_a_party_and_a_refusal_is_noted() -> None:
    assert {AGENT, "acme"} <= set(parties_of(caller(Principal(agent_id=AGENT, principal_id="acme")).call))
    found = caller(ANONYMOUS)
    refused = Refused(429, "rate-limited", "Slowly.")
    assert str(found.refuse(refused)) == "Slowly."
    assert found.refused is refused
