"""People: what is sent to them arrives as mail and in functions, and they answer by links, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.messaging import inbox, sent
from tests.people import DESK, URL, Reachable, reachable, recipient_of
from tests.service import AGENT
from tests.stateful import StatefulBench, audited_backend, keeping

from bespeak import App, Context, ContractError, Refusal
from bespeak.contract.agent import Agent
from bespeak.extensions.messages.people import ask_person
from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.messages.settings import PersonSettings
from bespeak.extensions.messages.store import ListMessages, NextOutbox
from bespeak.extensions.queues import store
from bespeak.extensions.queues.store import ListItems
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.handling import RefusedError
from bespeak.state.store.commands.cases import Case, ReadCase
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict

anyio_backend = audited_backend
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


async def test_a_question_that_nobody_answered_in_time_has_expired() -> None:
    async with reachable() as desk:
        await ask(desk.bench, within=0.0)
        assert await state_of(desk.bench) == "expired"


@rows("question", "", "  ", "a\0b", "x" * 5000)
async def test_a_question_that_cannot_be_kept_is_refused(question: str) -> None:
    async with reachable() as desk:
        with pytest.raises(RefusedError):
            await ask(desk.bench, question=question)
        with pytest.raises(ValueError, match="begins with esc-"):
            await ask(desk.bench, case_id="case-1")


async def test_an_unknown_person_cannot_be_asked_and_those_who_can_are_listed() -> None:
    async with reachable(people={"chef": PersonSettings(scopes=("kitchen:write",))}) as desk:
        with pytest.raises(RefusedError) as raised:
            await ask(desk.bench, "chef")
        assert raised.value.refused.status == 404
        assert raised.value.refused.details["people"] == ["operator"]
        assert (await ask(desk.bench, "operator")).recipient == "operator"


async def acknowledged(desk: Reachable, sent_id: str) -> dict[str, Any]:
    reply = await desk.bench.send("CHECK", "/", {"target": sent_id})
    assert reply.status == 200, reply.json
    found: dict[str, Any] = reply.json["result"]
    return found


METHODS = ("ALERT", "CHECK", "CANCEL", "REPLY", "BROADCAST")


async def test_an_alert_is_mailed_and_acknowledged_by_its_link_once() -> None:
    async with reachable(methods=METHODS, agents=(Agent(agent_id=AGENT, name="boiler-watch"),)) as desk:
        alert_id = (await sent(desk.bench, "ALERT", ALERTED))["alert_id"]
        mail = await desk.mail()
        text = mail.get_content()
        assert mail["Subject"] == "Alert from boiler-watch (aaaaaaaaaaaa)"
        assert f"severity critical. Agent {AGENT} says:" in text.replace("\r\n", " ").replace("\n", " ")
        assert "> The boiler is cold." in text
        token = await desk.token()
        assert (await desk.answers.look(token)).quoted.count("boiler") == 1
        assert (await acknowledged(desk, alert_id))["status"] == "sent"
        assert (await desk.answer(token)).status == 200
        found = await acknowledged(desk, alert_id)
        assert (found["status"], found["details"]["acknowledged_by"]) == ("acknowledged", "person:front-desk")
        [told] = await inbox(desk.bench, AGENT)
        assert (told["kind"], told["sender"], told["content"]["status"]) == (
            "confirmation",
            "person:front-desk",
            "accepted",
        )
        again = await desk.answer(token)
        assert (again.status, again.title) == (409, "This has been answered")
        assert len(await inbox(desk.bench, AGENT)) == 1


async def test_an_acknowledged_alert_goes_no_further() -> None:
    async with reachable(methods=METHODS) as desk:
        await sent(desk.bench, "ALERT", {**ALERTED, "escalation_path": ["operator"]})
        await desk.answer(await desk.token())
        assert await desk.bench.store.read(NextOutbox(TOPIC)) is None


async def test_a_notification_is_mailed_and_its_sender_sees_who_acknowledged_it() -> None:
    async with reachable(methods=METHODS) as desk:
        sent_id = (await sent(desk.bench, "NOTIFY", {"recipient": "front-desk", "content": {"room": 7}}))[
            "notification_id"
        ]
        assert '> {\n>   "room": 7\n> }' in (await desk.mail()).get_content().replace("\r\n", "\n")
        await desk.answer(await desk.token())
        found = await acknowledged(desk, sent_id)
        assert (found["status"], found["details"]["acknowledged_by"]) == ("acknowledged", "person:front-desk")


async def test_a_broadcast_reaches_people_and_asks_for_no_answer() -> None:
    async with reachable(methods=METHODS) as desk:
        receipt = await sent(
            desk.bench, "BROADCAST", {"audience": ["front-desk", OTHER], "content": "Maintenance at 9"}
        )
        assert receipt["deliveries"] == 2
        text = (await desk.mail()).get_content()
        assert ("> Maintenance at 9" in text, "acknowledge" in text) == (True, False)


async def test_an_escalation_to_a_person_is_decided_by_its_link() -> None:
    async with reachable() as desk:
        raised = {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 9}, "recipient": "front-desk"}
        case_id = (await sent(desk.bench, "ESCALATE", raised))["escalation_id"]
        assert '"amount": 9' in (await desk.mail()).get_content()
        assert f"bespeak cases accept {case_id}" in (await desk.mail()).get_content()
        await desk.answer(await desk.token(), "rejected", "Not today.")
        case: Case = await desk.bench.store.read(ReadCase(case_id))
        assert (case.state, case.decided_by, case.reason) == ("rejected", "person:front-desk", "Not today.")


@rows("principal", "front-desk", "desk@acme.example")
async def test_a_person_cannot_decide_what_its_own_agent_asks(principal: str) -> None:
    own = Agent(agent_id=AGENT, name="own", principal_id=principal)
    async with reachable(agents=(own,)) as desk:
        raised = {"task_id": "t-1", "reason": "scope_limit", "context": {}, "recipient": "front-desk"}
        case_id = (await sent(desk.bench, "ESCALATE", raised))["escalation_id"]
        refused = await desk.answer(await desk.token())
        assert (refused.status, "Another party" in refused.text) == (403, True)
        assert await state_of(desk.bench, case_id) == "pending"


@rows("change", "", "x", "x.y", "{}x", "{}.", "é.{}")
async def test_a_forged_link_is_not_valid(change: str) -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        token = change.format(await desk.token())
        assert (await desk.answers.look(token)).title == "This link is not valid"
        assert (await desk.answer(token)).status == 404
        assert await state_of(desk.bench) == "pending"


async def test_a_link_of_another_server_is_not_valid() -> None:
    async with reachable() as desk, reachable() as other:
        await ask(desk.bench)
        await ask(other.bench)
        assert (await other.answer(await desk.token())).status == 404


async def test_a_link_expires() -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        link = desk.answers.links.make("front-desk", "esc-run-1", 1.0)
        assert link is not None
        token = link.partition("token=")[2]
        assert (await desk.answer(token)).title == "This link has expired"
        assert await state_of(desk.bench) == "pending"


async def test_a_link_to_what_is_gone_or_for_another_person_answers_nothing() -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        for name, target in (("operator", "esc-run-1"), ("front-desk", "esc-run-2"), ("front-desk", "msg-1-2")):
            link = desk.answers.links.make(name, target, 1e12)
            assert link is not None
            assert (await desk.answer(link.partition("token=")[2])).status == 410
        assert await state_of(desk.bench) == "pending"


async def test_an_answer_that_the_page_does_not_offer_changes_nothing() -> None:
    async with reachable() as desk:
        await ask(desk.bench)
        assert (await desk.answer(await desk.token(), "executed")).choices
        assert await state_of(desk.bench) == "pending"


@rows("lacking", "url", "key")
async def test_without_a_key_or_an_http_face_the_mail_has_the_command_and_the_log_says_why_once(
    lacking: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with reachable(url=None if lacking == "url" else URL, keyed=lacking != "key", methods=METHODS) as desk:
        for _ in range(2):
            await sent(desk.bench, "ALERT", ALERTED)
        text = (await desk.mail(2)).get_content()
        assert ("http" in text, "bespeak people acknowledge msg-" in text) == (False, True)
    assert len([one for one in caplog.records if "has no links" in one.getMessage()]) == 1


async def test_what_an_agent_says_is_quoted_and_begins_no_header() -> None:
    async with reachable(methods=METHODS) as desk:
        hostile = "Hi\r\nBcc: eve@evil.example\r\n\x1b[31m\u2028Sent by the bank.\0"
        await sent(desk.bench, "NOTIFY", {"recipient": "front-desk", "content": hostile})
        mail = await desk.mail()
        assert (mail["Bcc"], mail.get_content_type()) == (None, "text/plain")
        assert all(
            line.startswith("> ") for line in mail.get_content().splitlines() if "evil" in line or "bank" in line
        )
        assert "\x1b" not in mail.get_content()


async def test_the_operator_has_the_contact_address_and_always_exists() -> None:
    async with reachable(people={}, methods=METHODS) as desk:
        await sent(desk.bench, "NOTIFY", {"recipient": "operator", "content": "hello"})
        assert (await desk.mail())["To"] == "ops@test.example"
    async with keeping(methods=METHODS) as bench:
        receipt = await sent(bench, "ALERT", {**ALERTED, "recipient": "operator"})
        assert receipt["status"] == "sent"
        assert await bench.store.read(NextOutbox(TOPIC)) is None
    async with keeping() as bench:  # without any method or table
        assert (await bench.send("NOTIFY", "/", {"recipient": "operator", "content": "x"})).status == 200


async def test_an_unknown_name_is_refused_with_those_that_the_agent_may_address() -> None:
    people = {"front-desk": PersonSettings(), "chef": PersonSettings(scopes=("kitchen:write",))}
    async with reachable(people=people, methods=METHODS) as desk:
        bodies = {
            "NOTIFY": {"recipient": "chef", "content": "x"},
            "ALERT": {**ALERTED, "recipient": "chef"},
            "ESCALATE": {"task_id": "t", "reason": "scope_limit", "context": {}, "recipient": "chef"},
        }
        for method, body in bodies.items():
            reply = await desk.bench.send(method, "/", body)
            assert (reply.status, reply.error["code"]) == (404, "unknown-recipient"), method
            assert reply.error["people"] == ["front-desk", "operator"]
            admitted = await desk.bench.send(method, "/", body, authority_scope="kitchen:write")
            assert admitted.status in (200, 202), admitted.json


@rows("address", "person:front-desk", "postbox:front-desk")
async def test_an_agent_cannot_use_the_inner_address_of_a_person(address: str) -> None:
    async with reachable(methods=METHODS) as desk:
        assert (await desk.bench.send("NOTIFY", "/", {"recipient": address, "content": "x"})).status == 503


async def test_an_agent_cannot_flood_a_person() -> None:
    async with reachable(people={}, methods=METHODS) as desk:
        body = {"recipient": "operator", "content": "x"}
        for _ in range(100):
            assert (await desk.bench.send("NOTIFY", "/", body)).status == 200
        assert (await desk.bench.send("NOTIFY", "/", body)).status == 503
        assert (await desk.bench.send("NOTIFY", "/", body, agent=OTHER)).status == 200


async def test_a_function_takes_what_is_sent_and_a_mail_is_sent_too() -> None:
    taken: list[dict[str, Any]] = []

    async def post_to_desk(message: str, severity: str, sender: str, kind: str, reference: str) -> None:
        """Show it at the desk."""
        taken.append({"message": message, "severity": severity, "sender": sender, "kind": kind, "ref": reference})

    async with reachable(participants=(recipient_of(post_to_desk),)) as desk:
        await sent(desk.bench, "ALERT", ALERTED)
        await desk.mail()
        await until(lambda: len(taken) == 1)
    assert taken[0].pop("ref").startswith("msg-")
    assert taken == [{"message": "The boiler is cold.", "severity": "critical", "sender": AGENT, "kind": "alert"}]


async def test_a_function_runs_in_the_authority_of_the_sender_with_a_stable_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_FIRST_DELAY", 0.0)
    seen: list[tuple[Any, str]] = []

    def show(message: str, context: Context) -> None:
        """Show it."""
        seen.append((context.principal.agent_id, context.request.headers["idempotency-key"]))
        if len(seen) == 1:
            raise RuntimeError("the printer is off")

    async with keeping(participants=(recipient_of(show, retries=2),)) as bench:
        await sent(bench, "NOTIFY", {"recipient": "front-desk", "content": "x"})
        await until(lambda: len(seen) == 2)
    assert seen[0] == seen[1]
    assert seen[0][0] == AGENT


async def test_what_a_function_refuses_is_reported_and_shown_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    def show(message: str) -> None:
        """Show it.

        Errors:
            closed: The desk is closed.
        """
        raise Refusal("closed", "The desk is closed.")

    async with keeping(participants=(recipient_of(show, retries=5),)) as bench:
        await sent(bench, "NOTIFY", {"recipient": "front-desk", "content": "x"})
        async with asyncio.timeout(20):
            while not (dead := await bench.store.read(ListItems("@front-desk", "dead", 10))):
                await asyncio.sleep(0.005)
        assert dead[0].content()["error"]["code"] == "closed"
    assert "has failed for good" in caplog.text


async def test_what_a_function_adds_is_committed_with_its_end() -> None:
    async def show(message: str, context: Context) -> None:
        """Tell the operator too."""
        context.notify("operator", f"desk: {message}")

    async with keeping(participants=(recipient_of(show),)) as bench:
        await sent(bench, "NOTIFY", {"recipient": "front-desk", "content": "x"})
        async with asyncio.timeout(20):
            while not (found := await bench.store.read(ListMessages("person:operator"))):
                await asyncio.sleep(0.005)
        assert await bench.store.read(ListItems("@front-desk", "done", 10))
        assert len(found) == 1


async def test_an_escalation_reaches_the_function_with_the_id_of_its_case() -> None:
    taken: list[tuple[str, Any]] = []

    def show(reference: str, content: Any) -> None:
        """Show it."""
        taken.append((reference, content))

    async with keeping(participants=(recipient_of(show),)) as bench:
        raised = {"task_id": "t", "reason": "scope_limit", "context": {"a": 1}, "recipient": "front-desk"}
        case_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        await until(lambda: len(taken) == 1)
    assert (taken[0][0], taken[0][1]["context"]) == (case_id, {"a": 1})


async def test_two_workers_take_one_answer_of_a_link(shared_place: str) -> None:
    key = OKPKey.generate_key("Ed25519")
    async with (
        reachable(store=open_store(shared_place), key=key, methods=METHODS) as one,
        reachable(store=open_store(shared_place), key=key, methods=METHODS) as two,
    ):
        alert_id = (await sent(one.bench, "ALERT", ALERTED))["alert_id"]
        async with asyncio.timeout(20):  # either worker sends the mail
            while not one.mailbox.received and not two.mailbox.received:
                await asyncio.sleep(0.005)
        reader = one if one.mailbox.received else two
        token = await reader.token()
        pages = await asyncio.gather(one.answer(token), two.answer(token), one.answer(token), two.answer(token))
        # An equal answer at the same moment is the same one; later ones are told that it has been answered.
        assert {page.status for page in pages} <= {200, 409}
        assert (await acknowledged(one, alert_id))["details"]["acknowledged_by"] == "person:front-desk"
        assert len(await inbox(two.bench, AGENT)) == 1


async def test_two_workers_take_one_decision_of_a_link(shared_place: str) -> None:
    key = OKPKey.generate_key("Ed25519")
    async with (
        reachable(store=open_store(shared_place), key=key) as one,
        reachable(store=open_store(shared_place), key=key) as two,
    ):
        await ask(one.bench)
        link = one.answers.links.make("front-desk", "esc-run-1", 1e12)
        assert link is not None
        token = link.partition("token=")[2]
        pages = await asyncio.gather(one.answer(token, "accepted"), two.answer(token, "rejected"))
        assert sorted(page.status for page in pages) == [200, 409]


@rows("fault", "takes colour", "another recipient", "retries", "does not take")
def test_a_recipient_that_cannot_be_declared_is_refused_with_its_place(fault: str) -> None:
    app = App("Rooms", server_id="rooms.example")

    def wrong_name(colour: str) -> None:
        """Take it."""

    def wrong_type(message: int) -> None:
        """Take it."""

    def right(message: str) -> None:
        """Take it."""

    app.recipient("front-desk")(right)
    function = {"takes colour": wrong_name, "does not take": wrong_type}.get(fault, right)
    name = "front-desk" if fault == "another recipient" else "desk"
    with pytest.raises(ContractError, match=fault):
        app.recipient(name, retries=500 if fault == "retries" else 5)(function)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.005)
