"""People: what is sent to them arrives as mail and in functions, and they answer by links, each once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.people import DESK, reachable
from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.extensions.messages.people import ask_person
from bespeak.extensions.messages.settings import PersonSettings
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.handling import RefusedError
from bespeak.state.store.commands.cases import Case, ReadCase
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
ALERTED = {"recipient": "front-desk", "message": "The boiler is cold.", "severity": "critical"}


def call_of(bench: StatefulBench, agent_id: str = AGENT, **headers: str) -> RoutedCall:
    """Return a call of an agent, as a workflow has one."""
    server = bench.bench.dispatcher.server
    call = Call(Request("NOTIFY", "/", "", headers, b"", Connection()), server)
    principal = server.principals.resolve(agent_id, headers.get("authority-scope"))
    call.principal = principal  # type: ignore[assignment]
    found = call.routes.router.find("NOTIFY", "/")
    assert found is not None
    return RoutedCall(call, found[0])


async def ask(bench: StatefulBench, name: str = "front-desk", question: str = "May it cost 80?", **more: Any) -> Case:
    command = ask_person(call_of(bench), name, question, **{"case_id": "esc-run-1", "within": 60.0, **more})
    done = await bench.store.do(command)
    assert not isinstance(done, Conflict)
    case: Case = done[0]
    return case


async def state_of(bench: StatefulBench, case_id: str = "esc-run-1") -> str:
    case: Case = await bench.store.read(ReadCase(case_id))
    return case.state


async def test_a_question_is_answered_by_the_link_in_the_mail_once() -> None:
    async with reachable() as desk:
        assert (await ask(desk.bench)).state == "pending"
        mail = await desk.mail()
        assert (mail["To"], "> May it cost 80?" in mail.get_content()) == (DESK, True)
        token = await desk.token()
        shown = await desk.answers.look(token)
        assert (shown.status, shown.quoted, list(shown.choices)) == (200, "May it cost 80?", ["accepted", "rejected"])
        assert await state_of(desk.bench) == "pending"  # a look changes nothing
        assert (await desk.answer(token)).title == "Thank you"
        assert await state_of(desk.bench) == "accepted"
        again = await desk.answer(token, "rejected")
        assert (again.status, "accepted by person:front-desk" in again.text) == (409, True)
        assert await state_of(desk.bench) == "accepted"


async def test_a_question_that_is_asked_again_is_the_same_case_and_one_mail() -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        await desk.answer(await desk.token(), "rejected", "Too dear.")
        repeated = await ask(desk.bench)
        assert (repeated.state, repeated.reason) == ("rejected", "Too dear.")
        assert len(desk.mailbox.received) == 1


async def test_an_agent_with_the_scope_decides_a_question_but_not_its_own() -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        given, scope = {"target_id": "esc-run-1", "status": "accepted"}, {"authority_scope": "escalation:confirm"}
        own = await desk.bench.send("CONFIRM", "/", given, **scope)
        assert (own.status, own.error["code"]) == (403, "own-case")
        assert (await desk.bench.send("CONFIRM", "/", given, agent=OTHER)).status == 403
        assert (await desk.bench.send("CONFIRM", "/", given, agent=OTHER, **scope)).status == 200
        assert await state_of(desk.bench) == "accepted"


async def test_a_question_expires_and_its_link_with_it() -> None:
    async with reachable() as desk:
        await ask(desk.bench, within=0.0)
        assert await state_of(desk.bench) == "expired"
        case = await ask(desk.bench, case_id="esc-run-2", within=1e-9)
        assert case.state in ("pending", "expired")


async def test_an_unknown_person_cannot_be_asked_and_those_who_can_are_listed() -> None:
    async with reachable(people={"chef": PersonSettings(scopes=("kitchen:write",))}) as desk:
        with pytest.raises(RefusedError) as raised:
            await ask(desk.bench, "chef")
        assert raised.value.refused.status == 404
        assert raised.value.refused.details["people"] == ["operator"]
        assert (await ask(desk.bench, "operator")).recipient == "operator"
