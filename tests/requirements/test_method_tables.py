"""The tables of the drafts (specs/methods.toml) against a server that carries out every method of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.extensions.reports.test_report import fetch
from tests.messaging import contents, inbox, soon, subscribe
from tests.requirements.scene import CALLS, FRIEND, NEWS, TABLES, Given, Scene, scene
from tests.runtime.test_settlement import absent
from tests.service import AGENT, Reply, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.contract.schema.subschemas import nodes
from bespeak.contract.schema.validation import IN_WORDS
from bespeak.extensions.entities import methods as entities
from bespeak.faces.agtp.server import AgtpServer
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.records import FindRecord

pytestmark = pytest.mark.anyio
every_method = pytest.mark.parametrize("method", TABLES)
INVALID = (422, "input-validation-failed")


async def call(it: Scene, method: str, given: Given, /, **changes: Any) -> Reply:
    """Send a call; a parameter that is None is left out."""
    body = {name: value for name, value in {**given.body, **changes}.items() if value is not None}
    return await it.send(method, body, agent=given.agent, **given.headers)


def optional(method: str) -> list[str]:
    return [*TABLES[method]["should"], *TABLES[method]["may"]]


# rows


@pytest.mark.requirement(
    "METHODS-3.1-1",
    "METHODS-3.2-1",
    "METHODS-3.3-1",
    "METHODS-3.4-1",
    "METHODS-3.5-1",
    "METHODS-3.6-1",
    "METHODS-4.1-1",
    "METHODS-4.2-1",
    "METHODS-4.2-2",
    "METHODS-4.3-1",
    "METHODS-4.4-1",
    "METHODS-4.4-3",
    "METHODS-4.5-1",
    "METHODS-4.6-1",
    "METHODS-4.6-2",
    "METHODS-4.7-1",
    "METHODS-4.8-1",
    "METHODS-4.8-2",
    "METHODS-4.9-1",
    "METHODS-4.9-2",
    "METHODS-4.10-1",
    "METHODS-4.10-2",
    "METHODS-4.11-1",
    "METHODS-4.12-1",
    "METHODS-4.12-2",
    "METHODS-4.12-4",
    "METHODS-4.13-1",
    "METHODS-4.13-2",
    "METHODS-5.1-3",
    "METHODS-5.2-1",
    "METHODS-5.3-1",
    "METHODS-5.4-1",
    "METHODS-5.5-1",
    "METHODS-5.6-1",
    "METHODS-5.7-1",
    "METHODS-5.8-1",
    "METHODS-5.9-2",
    "METHODS-5.10-1",
    "METHODS-6.1-1",
    "METHODS-6.2-1",
    "METHODS-6.2-2",
    "METHODS-6.3-1",
    "METHODS-6.3-2",
    "METHODS-6.4-1",
    "METHODS-6.4-2",
    "METHODS-6.5-1",
    "METHODS-6.5-2",
    "METHODS-6.6-1",
    "METHODS-6.6-2",
    "METHODS-6.7-1",
    "METHODS-6.7-2",
    "METHODS-7.1-1",
    "METHODS-7.2-1",
    "METHODS-7.3-1",
    "METHODS-7.4-1",
    "METHODS-7.5-1",
    "METHODS-8.1-1",
    "METHODS-8.2-1",
    "METHODS-8.3-1",
    "METHODS-8.4-1",
    "METHODS-8.5-1",
    "METHODS-8.6-1",
    "METHODS-8.7-1",
    "METHODS-8.8-2",
    "METHODS-8.9-1",
    "CORE-4.8-1",
    "CORE-4.9-1",
    "CORE-4.10-1",
    "CORE-4.11-1",
    "CORE-4.12-1",
)
@every_method
async def test_every_row_is_taken_and_those_that_must_be_there_are_needed(method: str) -> None:
    async with scene() as it:
        assert CALLS.keys() == TABLES.keys()
        given, other = await it.give(method), await it.give(method)
        assert given.body.keys() >= {*TABLES[method]["must"], *optional(method)}
        for name in TABLES[method]["must"]:
            refused = await call(it, method, given, **{name: None})
            assert (refused.status, name in refused.error["message"]) == (422, True), (name, refused.json)
        assert (await call(it, method, given)).status in (200, 202)
        least = await call(it, method, other, **dict.fromkeys(optional(method)))
        assert least.status in (200, 202), least.json


async def test_a_value_that_breaks_the_pattern_of_a_row_is_refused_in_words() -> None:
    async with scene() as it:
        asked = [one.input_schema for one in it.bench.bench.routes.endpoints.values() if one.builtin]
        patterns = {node["pattern"] for schema in asked for _, node in nodes(schema) if "pattern" in node}
        assert patterns <= IN_WORDS.keys()
        for body, message in (
            ({"target": "Price List"}, '"Price List" must be words of small letters and digits, joined by _ or -'),
            ({"key": "a\nb"}, '"a\\nb" must be one line without control characters'),
        ):
            refused = await call(it, "IMPORT", await it.give("IMPORT"), **body)
            assert (refused.status, message in refused.error["message"]) == (422, True), refused.json
            assert "^" not in refused.error["message"]


@pytest.mark.requirement(
    "METHODS-3.6-2",
    "METHODS-4.5-3",
    "METHODS-4.12-5",
    "METHODS-5.5-7",
    "METHODS-5.9-3",
    "METHODS-6.1-2",
    "METHODS-6.3-3",
    "METHODS-6.3-4",
    "METHODS-6.4-4",
    "METHODS-6.5-3",
    "METHODS-6.5-4",
    "METHODS-6.6-3",
    "METHODS-7.1-1",
    "METHODS-7.2-2",
    "METHODS-7.3-3",
    "METHODS-7.4-1",
    "METHODS-7.5-2",
    "METHODS-8.1-2",
    "METHODS-8.2-2",
    "METHODS-8.9-2",
    "CORE-4.9-2",
    "CORE-4.10-2",
    "CORE-4.11-8",
    "CORE-4.12-1",
    "CORE-4.12-4",
    "CORE-4.12-5",
)
@pytest.mark.parametrize("method", [method for method, table in TABLES.items() if "words" in table])
async def test_a_row_takes_the_words_of_the_draft_and_no_other(method: str) -> None:
    async with scene() as it:
        given = await it.give(method)
        for name, words in TABLES[method]["words"].items():
            assert (await call(it, method, given, **{name: "otherwise"})).refusal == INVALID
            for word in words:
                reply = await call(it, method, given, **{name: word})
                assert reply.status < 400 or reply.refusal != INVALID, (name, word, reply.json)


@pytest.mark.requirement(
    "METHODS-3.2-8",
    "METHODS-3.6-8",
    "METHODS-4.1-5",
    "METHODS-4.5-6",
    "METHODS-4.6-6",
    "METHODS-4.12-9",
    "METHODS-5.1-6",
    "METHODS-5.3-3",
    "METHODS-5.9-5",
    "METHODS-5.10-5",
    "METHODS-6.1-6",
    "METHODS-6.4-7",
    "METHODS-7.1-6",
    "METHODS-7.2-5",
    "METHODS-7.3-5",
    "METHODS-7.4-3",
    "METHODS-7.5-4",
    "METHODS-8.1-7",
    "METHODS-8.2-5",
    "METHODS-8.3-5",
    "CORE-4.10-8",
    "CORE-4.12-7",
)
@pytest.mark.parametrize("method", [method for method, table in TABLES.items() if 400 in table["errors"]])
async def test_a_body_that_is_not_json_is_400(method: str) -> None:
    async with scene() as it:
        given = await it.give(method)
        before = await contents(it.bench)
        refused = await it.send(method, b'{"a":', agent=given.agent, **given.headers)
        assert refused.status == 400
        assert await contents(it.bench) == before


# idempotency and the summary


MOMENTS = {"checked_at"}
"""Members of results that tell when something was found out."""


def told(reply: Reply) -> dict[str, Any]:
    return {name: value for name, value in reply.json["result"].items() if name not in MOMENTS}


@pytest.mark.requirement(
    "METHODS-3.1-7",
    "METHODS-3.2-9",
    "METHODS-3.3-5",
    "METHODS-3.5-5",
    "METHODS-3.6-7",
    "METHODS-4.1-4",
    "METHODS-4.2-6",
    "METHODS-4.3-4",
    "METHODS-4.4-7",
    "METHODS-4.5-5",
    "METHODS-4.6-5",
    "METHODS-4.7-7",
    "METHODS-4.8-6",
    "METHODS-4.9-7",
    "METHODS-4.10-7",
    "METHODS-4.11-6",
    "METHODS-4.12-8",
    "METHODS-4.13-9",
    "METHODS-5.1-7",
    "METHODS-6.5-6",
    "METHODS-8.9-5",
    "CORE-4.9-7",
    "CORE-4.10-5",
)
@pytest.mark.parametrize("method", [method for method, table in TABLES.items() if table["idempotent"] == "yes"])
async def test_an_idempotent_call_that_is_repeated_is_answered_alike_and_changes_nothing(method: str) -> None:
    async with scene() as it:
        given = await it.give(method)
        before = await contents(it.bench)
        first = await call(it, method, given)
        assert TABLES[method]["changes_state"] or await contents(it.bench) == before
        before = await contents(it.bench)
        again = await call(it, method, given)
        assert (again.status, told(again)) == (first.status, told(first))
        assert await contents(it.bench) == before


@pytest.mark.requirement(
    "METHODS-3.4-7",
    "METHODS-5.2-6",
    "METHODS-5.3-6",
    "METHODS-5.4-9",
    "METHODS-5.5-4",
    "METHODS-5.6-6",
    "METHODS-5.7-7",
    "METHODS-5.9-7",
    "METHODS-5.10-7",
    "METHODS-6.1-5",
    "METHODS-6.2-6",
    "METHODS-6.3-6",
    "METHODS-6.4-6",
    "METHODS-6.6-10",
    "METHODS-6.7-6",
    "METHODS-7.1-8",
    "METHODS-7.2-6",
    "METHODS-7.3-7",
    "METHODS-7.4-5",
    "METHODS-7.5-5",
    "METHODS-8.1-8",
    "METHODS-8.3-10",
    "METHODS-8.4-6",
    "METHODS-8.6-6",
    "METHODS-8.7-6",
    "METHODS-8.8-7",
    "CORE-4.8-8",
    "CORE-4.11-10",
    "CORE-4.12-8",
)
@pytest.mark.parametrize(
    "method", [method for method, table in TABLES.items() if table["idempotent"] == "no" and method != "SIGN"]
)
async def test_another_call_without_a_key_is_another_act_or_refused(method: str) -> None:
    async with scene() as it:
        given = await it.give(method)
        first = await call(it, method, given, idempotency_key=None)
        assert first.status in (200, 202)
        again = await call(it, method, given, idempotency_key=None)
        # What can happen once only (a pause, a cancellation, a reply) is refused; the rest happens again.
        assert again.status in (400, 404, 409) or told(again) != told(first)


@pytest.mark.requirement("METHODS-5.8-6")
async def test_signatures_of_the_same_payload_at_two_times_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as it:
        given, now = await it.give("SIGN"), time.time()
        results = []
        for moment in (now, now + 60):
            monkeypatch.setattr(entities.time, "time", lambda moment=moment: moment)
            results.append(told(await call(it, "SIGN", given)))
        first, second = results
        assert first["signature"] != second["signature"]
        assert first["signed_at"] < second["signed_at"]


@pytest.mark.requirement("METHODS-8.2-6")
async def test_a_batch_is_as_idempotent_as_its_calls() -> None:
    async with scene() as it:
        for steps, alike in (([NEWS], True), ([{"method": "BOOK", "path": "/room"}], False)):
            first, again = [(await it.result("BATCH", {"calls": steps}))["results"] for _ in range(2)]
            assert ([one["output"] for one in first] == [one["output"] for one in again]) is alike


@pytest.mark.requirement("METHODS-8.5-3", "METHODS-8.5-7")
async def test_a_retry_is_a_new_receipt_for_the_original_task_and_repeats_what_failed_only() -> None:
    async with scene() as it:
        given = await it.give("RETRY")
        first, again = [(await call(it, "RETRY", given)).json["result"] for _ in range(2)]
        assert first["original_task_id"] == again["original_task_id"] == given.body["original_task_id"]
        assert first["retry_id"] != again["retry_id"]
        assert (first["output"], again["output"], it.calls) == ({"booking": 1}, {"booking": 1}, [""])
        assert (first["status"], again["status"]) == ("completed", "suppressed")


@pytest.mark.requirement("METHODS-9-1", "METHODS-9-2", "METHODS-9-4")
async def test_the_manifest_has_the_methods_as_the_summary_has_them() -> None:
    async with scene() as it:
        manifest = (await it.bench.send("DISCOVER", "/", agent=None)).json
        published = {one["method"]: one for one in manifest["endpoints"] if one["path"] == "/"}
        tier_2 = {name: table for name, table in TABLES.items() if table["draft"] == "METHODS"}
        assert published.keys() >= tier_2.keys()
        for name, table in tier_2.items():
            entry = published[name]
            assert entry["namespace"] == table["category"], name
            assert entry["semantic"]["is_idempotent"] is (table["idempotent"] == "yes"), name
            informs = entry["semantic"]["impact"] == "informational"
            assert informs is (not table["changes_state"] and table["category"] != "communicate"), name
            schema = entry["input_schema"]
            assert schema["properties"].keys() >= {*table["must"], *optional(name)}, name
            # A workflow is resumed without a nonce too: the draft asks for one of sessions alone.
            assert set(schema["required"]) == set(table["must"]) - {"resumption_nonce"}, name


@pytest.mark.requirement("METHODS-1.4-1")
async def test_the_first_answer_of_a_connection_lists_the_methods_that_are_supported() -> None:
    tier_2 = {name for name, table in TABLES.items() if table["draft"] == "METHODS"}
    async with scene() as it, keeping(methods=("LOG", "PAUSE")) as bench:
        # Every server with a store has RESUME, for its sessions.
        for dispatcher, supported in (
            (it.bench.bench.dispatcher, tier_2),
            (bench.bench.dispatcher, {"LOG", "PAUSE", "RESUME"}),
        ):
            first, second = await two_heads(dispatcher)
            [listed] = [line.partition(":")[2] for line in first if line.lower().startswith("supported-methods:")]
            assert {verb.strip() for verb in listed.split(",")} & tier_2 == supported
            assert not any(line.lower().startswith("supported-methods:") for line in second)


async def two_heads(dispatcher: Dispatcher) -> list[list[str]]:
    """Send two requests on one connection and return the heads of the answers."""
    server = AgtpServer(dispatcher)
    [(_, port)] = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"AGTP/1.0 DESCRIBE /\r\n\r\n" * 2)
        return [await next_head(reader) for _ in range(2)]
    finally:
        writer.close()
        await server.close()


async def next_head(reader: asyncio.StreamReader) -> list[str]:
    """Read an answer and return its head."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)).decode().split("\r\n")
    [length] = [int(line.partition(":")[2]) for line in head if line.lower().startswith("content-length:")]
    await reader.readexactly(length)
    return head


@pytest.mark.requirement("METHODS-2-2")
async def test_a_server_without_tier_2_methods_refuses_them_and_is_complete() -> None:
    async with keeping(make_endpoint("FETCH", "/news", echo)) as bench:
        for method in [name for name, table in TABLES.items() if table["draft"] == "METHODS" and name != "RESUME"]:
            assert (await bench.send(method, "/", {})).refusal == (405, "method-not-allowed"), method
        assert (await bench.send("NOTIFY", "/", {"recipient": FRIEND, "content": 1})).status == 200


NAMED = """
    FETCH SEARCH SCAN PULL IMPORT FIND EXTRACT FILTER VALIDATE TRANSFORM TRANSLATE NORMALIZE PREDICT RANK MAP
    REGISTER SUBMIT TRANSFER PURCHASE SIGN MERGE LINK LOG SYNC PUBLISH REPLY SEND REPORT
    MONITOR ROUTE RETRY PAUSE RESUME RUN CHECK QUOTE BOOK SCHEDULE LEARN COLLABORATE
"""
"""The verbs beyond the floor that the base protocol names (core 4.13)."""


def answering(answer: dict[str, str]) -> Callable[[dict[str, Any]], dict[str, str]]:
    return lambda _: answer


@pytest.mark.requirement("CORE-4.13-5")
async def test_every_verb_that_the_base_protocol_names_can_be_bound() -> None:
    bench = build(*(make_endpoint(verb, "/thing", answering({"did": verb})) for verb in NAMED.split()))
    assert {verb: bench.send(verb, "/thing").json for verb in NAMED.split()} == {
        verb: {"did": verb} for verb in NAMED.split()
    }


# what single rows and codes do


async def records(it: Scene, method: str) -> list[Any]:
    payloads = [payload_of(row[-1]) or {} for row in await it.bench.store.read(ScanAudit())]
    return [one["extra"]["input"] for one in payloads if one.get("method") == method and one["status"] == 200]


@pytest.mark.requirement("METHODS-5.5-2", "METHODS-8.6-2")
@pytest.mark.parametrize(("method", "target"), [("CANCEL", "target_id"), ("PAUSE", "workflow_id")])
async def test_the_reason_of_a_change_is_on_record(method: str, target: str) -> None:
    async with scene(AuditSettings(records="governance")) as it:
        given = await it.give(method)
        assert (await call(it, method, given)).status == 200
        [recorded] = await records(it, method)
        assert (recorded[target], recorded["reason"]) == (given.body[target], given.body["reason"])


@pytest.mark.requirement("METHODS-5.4-8", "METHODS-5.4-10")
async def test_conditions_and_the_resource_bound_what_a_grant_is_good_for() -> None:
    endpoints = [
        make_endpoint(method, path, echo, scopes=("rooms:use",))
        for method in ("BOOK", "FETCH")
        for path in ("/room", "/hall")
    ]
    for fields, open_ones in (
        ({"resource": "*"}, {"BOOK /room", "FETCH /room", "BOOK /hall", "FETCH /hall"}),
        ({"resource": "/room"}, {"BOOK /room", "FETCH /room"}),
        ({"resource": "BOOK /room"}, {"BOOK /room"}),
        ({"resource": "*", "conditions": {"methods": ["BOOK"]}}, {"BOOK /room", "BOOK /hall"}),
        ({"resource": "*", "conditions": {"paths": ["/hall"]}}, {"BOOK /hall", "FETCH /hall"}),
        ({"resource": "/room", "conditions": {"methods": ["FETCH"], "paths": ["/room"]}}, {"FETCH /room"}),
    ):
        async with keeping(*endpoints, methods=("AUTHORIZE",)) as bench:
            body = {"subject": FRIEND, "scope": "rooms:use", "ttl": 60, **fields}
            held = "authorization:grant, rooms:use"
            assert (await bench.send("AUTHORIZE", "/", body, authority_scope=held)).status == 200
            answers = {str(one): (await bench.send(one.method, one.path, {}, agent=FRIEND)).status for one in endpoints}
            assert {name for name, status in answers.items() if status == 200} == open_ones, fields


@pytest.mark.requirement("METHODS-5.8-2", "METHODS-5.8-5")
async def test_the_named_key_and_algorithm_sign_and_both_have_defaults() -> None:
    async with scene() as it:
        given = await it.give("SIGN")
        for algorithm in ("EdDSA", "Ed25519"):
            result = told(await call(it, "SIGN", given, algorithm=algorithm))
            assert (result["algorithm"], result["key_id"]) == (algorithm, given.body["key_id"])
        default = told(await call(it, "SIGN", given, algorithm=None, key_id=None))
        assert (default["algorithm"], default["key_id"]) == ("EdDSA", given.body["key_id"])
        assert (await call(it, "SIGN", given, key_id="another")).refusal == (403, "key-refused")


@pytest.mark.requirement("METHODS-5.9-5")
async def test_a_record_that_cannot_be_written_is_503() -> None:
    store = absent()
    async with keeping(methods=("LOG",), store=store) as bench:
        body = {"event_type": "wire", "data": 1}
        store.away = True
        assert (await bench.send("LOG", "/", body)).refusal == (503, "store-unavailable")
        store.away = False
        assert (await bench.send("LOG", "/", body)).status == 200


@pytest.mark.requirement("METHODS-5.3-3")
async def test_a_submission_whose_key_is_in_use_is_409() -> None:
    async with scene() as it:
        given = await it.give("SUBMIT")
        it.holding = asyncio.Event()  # the callback does not answer yet, so that the first call goes on
        first = asyncio.create_task(it.send("SUBMIT", given.body, idempotency_key="k"))
        async with asyncio.timeout(20):
            while not it.told:
                await asyncio.sleep(0.005)
        meanwhile = await it.send("SUBMIT", given.body, idempotency_key="k")
        assert meanwhile.refusal == (409, "idempotency-key-in-progress")
        it.holding.set()
        assert (await first).status == 200


@pytest.mark.requirement("METHODS-5.3-5", "CORE-4.8-6")
@pytest.mark.parametrize("method", ["SUBMIT", "DELEGATE"])
async def test_the_callback_at_an_agtp_endpoint_is_told_the_end(method: str) -> None:
    async with scene() as it:
        result = told(await call(it, method, await it.give(method)))
        if method == "DELEGATE":
            [offer] = await inbox(it.bench, FRIEND)
            answer = {"in_reply_to": offer["message_id"], "content": {"read": True}}
            await it.result("REPLY", answer, agent=FRIEND)
        async with asyncio.timeout(20):
            while len(it.told) < 2:  # the first asks whether it receives
                await asyncio.sleep(0.005)
        content = it.told[1]["content"]
        assert content["status"] == "done"
        name = "tracking_id" if method == "SUBMIT" else "delegation_id"
        assert content[name] == result[name]


@pytest.mark.requirement("METHODS-7.1-9", "CORE-4.12-9")
@pytest.mark.parametrize(("method", "member"), [("ALERT", "message"), ("NOTIFY", "content")])
async def test_a_recipient_is_an_agent_a_person_or_a_group(method: str, member: str) -> None:
    async with scene() as it:
        await subscribe(it.bench, FRIEND, channel="on-call")
        for recipient in (FRIEND, "operator", "on-call"):
            body = {"recipient": recipient, member: f"for {recipient}", "severity": "high"}
            if method == "NOTIFY":
                del body["severity"]
            await it.result(method, body)
        async with asyncio.timeout(20):
            while len(found := await inbox(it.bench, FRIEND)) < 2:
                await asyncio.sleep(0.005)
        assert all(f"for {one}" in str([message["content"] for message in found]) for one in (FRIEND, "on-call"))
        assert any("for operator" in str(row) for row in await contents(it.bench))


@pytest.mark.requirement("METHODS-7.2-2", "METHODS-7.4-1", "METHODS-7.4-6")
async def test_each_channel_takes_its_own_addresses() -> None:
    async with scene() as it:
        sent = await it.result("BROADCAST", {"audience": ["sms:+4930123456"], "content": "x", "channel": "sms"})
        assert (sent["channel"], sent["deliveries"]) == ("sms", 1)
        assert (await it.result("SEND", {"recipient": "+4930123456", "channel": "sms", "content": "x"}))["confirmation"]
        for recipient in (it.callback, FRIEND):  # AGTP is for NOTIFY
            refused = await it.send("SEND", {"recipient": recipient, "channel": "webhook", "content": "x"})
            assert refused.refusal == (400, "recipient-refused")


@pytest.mark.requirement("METHODS-8.2-2")
@pytest.mark.parametrize(
    ("mode", "at_once"), [({}, 2), ({"execution_mode": "parallel"}, 2), ({"execution_mode": "sequential"}, 1)]
)
async def test_calls_of_a_batch_run_at_once_unless_it_is_sequential(mode: dict[str, str], at_once: int) -> None:
    running = most = 0
    met = asyncio.Event()

    async def meet(_: dict[str, Any]) -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == at_once:
            met.set()
        await met.wait()  # with nobody else, a call of a parallel batch would wait for ever
        await asyncio.sleep(0)
        running -= 1
        return {}

    endpoint = make_endpoint("AWAIT", "/porter", meet)
    async with keeping(endpoint, methods=("BATCH",)) as bench, asyncio.timeout(20):
        calls = [{"method": "AWAIT", "path": "/porter"}] * 2
        reply = await bench.send("BATCH", "/", {"calls": calls, **mode})
        assert (reply.json["result"]["succeeded"], most) == (2, at_once)


@pytest.mark.requirement("METHODS-8.1-3")
async def test_no_step_of_a_chain_begins_before_the_one_before_it_has_ended() -> None:
    seen: list[str] = []

    async def note(given: dict[str, Any]) -> dict[str, Any]:
        seen.append(f"{given['n']} begins")
        for _ in range(20):
            await asyncio.sleep(0)
        seen.append(f"{given['n']} ends")
        return {}

    endpoint = make_endpoint("AWAIT", "/porter", note, properties={"n": {"type": "integer"}})
    async with keeping(endpoint, methods=("CHAIN",)) as bench:
        steps = [{"method": "AWAIT", "path": "/porter", "parameters": {"n": n}} for n in (1, 2, 3)]
        assert (await bench.send("CHAIN", "/", {"steps": steps})).json["result"]["status"] == "completed"
    assert seen == [f"{n} {what}" for n in (1, 2, 3) for what in ("begins", "ends")]


@pytest.mark.requirement("METHODS-8.3-9")
async def test_the_interval_says_when_a_monitor_looks_again() -> None:
    async with scene() as it:
        given = await it.give("MONITOR")
        for interval in (600, 3600):
            before = time.time()
            result = told(await call(it, "MONITOR", given, interval=interval))
            assert result["interval"] == interval
            record = await it.bench.store.read(FindRecord(("monitor",), result["subscription_id"]))
            assert before + interval - 1 <= record.due <= time.time() + interval + 1


@pytest.mark.requirement("METHODS-7.5-6")
async def test_a_report_has_what_its_time_range_and_filters_allow() -> None:
    async with scene() as it:
        for number in range(2):
            await it.result("LOG", {"event_type": f"event-{number}", "data": 1})
        body = {"report_type": "log", "recipient": AGENT, "format": "markdown"}
        for scope, expected in (("all", True), ("1d", True), ({"from": "2001-01-01", "to": "2001-01-02"}, False)):
            made = await it.result("REPORT", {**body, "scope": scope})
            document = await fetch(it.bench, made["document_id"])
            assert (b"event-1" in document.body) is expected, scope


@pytest.mark.requirement("METHODS-8.3-8")
async def test_a_monitor_tells_only_what_is_beyond_its_threshold() -> None:
    readers = {"n": 1}
    count = make_endpoint("COUNT", "/readers", lambda _: dict(readers))
    async with keeping(count, methods=("MONITOR",)) as bench:
        target = {"method": "COUNT", "path": "/readers", "select": "n"}
        body = {"target": target, "events": ["output_changed"], "callback": "inbox", "interval": 3600}
        made = {}
        for name, fields in (("bounded", {"threshold": 5}), ("any", {})):
            reply = await bench.send("MONITOR", "/", {**body, **fields})
            made[name] = reply.json["result"]["subscription_id"]
        monitors = bench.bench.server.part("monitors")
        for readers["n"], told_of in ((2, {"any"}), (6, {"any", "bounded"})):
            before = {one["message_id"] for one in await inbox(bench, AGENT)}
            for one in made.values():
                await monitors._look(await bench.store.read(FindRecord(("monitor",), one)))
            news = [one for one in await inbox(bench, AGENT) if one["message_id"] not in before]
            assert {one["content"]["subscription_id"] for one in news} == {made[name] for name in told_of}


@pytest.mark.requirement("METHODS-8.3-6")
async def test_a_monitor_has_an_agent_or_the_address_of_a_resource_as_its_target() -> None:
    async with scene() as it:
        for target, event in (
            (FRIEND, "status_changed"),
            (f"agtp://{FRIEND}", "status_changed"),
            ("agtp://test.example/news", "availability_changed"),
            ("agtp://test.example/nothing", None),
            ("f" * 64, None),
        ):
            body = {"target": target, "events": [event or "status_changed"], "callback": "inbox"}
            reply = await it.send("MONITOR", body)
            assert reply.status == 200 if event else reply.status in (400, 404), (target, reply.json)


@pytest.mark.requirement("METHODS-7.3-6", "METHODS-7.3-8")
async def test_a_notification_an_alert_and_an_escalation_are_answered() -> None:
    async with scene() as it:
        for method, name in (("NOTIFY", "notification_id"), ("ALERT", "alert_id"), ("ESCALATE", "escalation_id")):
            asked = told(await call(it, method, await it.give(method), recipient=FRIEND))
            receipt = await it.result("REPLY", {"in_reply_to": asked[name], "content": method}, agent=FRIEND)
            assert receipt["recipient"] == AGENT
            [reply] = await inbox(it.bench, AGENT, thread_id=receipt["thread_id"])
            assert (reply["message_id"], reply["content"]) == (receipt["reply_id"], method)


@pytest.mark.requirement("CORE-4.9-10")
async def test_an_escalation_to_somebody_unknown_is_404_and_pauses_nothing() -> None:
    async with scene() as it:
        given = await it.give("ESCALATE")
        assert (await call(it, "ESCALATE", given, recipient="nobody")).refusal == (404, "unknown-recipient")
        assert (await it.bench.send("FETCH", "/news", {}, task_id=given.body["task_id"])).status == 200


@pytest.mark.requirement("CORE-4.11-4", "CORE-4.11-9", "METHODS-8.7-4")
async def test_a_session_that_is_not_resumed_by_its_time_has_expired() -> None:
    async with scene() as it:
        given = await it.give("SUSPEND")
        suspended = told(await call(it, "SUSPEND", given, resume_by=soon(0.3)))
        session = suspended["session_id"]
        async with asyncio.timeout(20):
            while (late := await it.bench.send("FETCH", "/news", {}, session_id=session)).status == 409:
                await asyncio.sleep(0.01)
        assert late.refusal == (408, "session-expired")
        resume = {"workflow_id": session, "resumption_nonce": suspended["resumption_nonce"]}
        assert (await it.send("RESUME", resume)).refusal == (408, "session-expired")
        assert (await call(it, "SUSPEND", given)).refusal == (408, "session-expired")
