"""Gates for the method grammar (AGIS 9.2, 13), and for task and session of a body."""

from __future__ import annotations

import logging
import secrets
import subprocess
import sys
from typing import Any

import pytest
from tests.cases import rows
from tests.process import serving
from tests.service import Bench, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.connect import connect_sync
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.service import Vocabulary
from bespeak.protocol.exchange.messages import Context


def clinic(**fields: Any) -> Bench:
    """Build a service with one verb of the catalog and one of its vocabulary."""
    return build(
        make_endpoint("BOOK", "/visit", echo),
        make_endpoint("ADMIT", "/patient", echo, capability="transaction"),
        vocabulary=Vocabulary(declared_verbs=("BOOK", "ADMIT")),
        **fields,
    )


@pytest.mark.requirement("AGIS-9.2-4", "AGIS-13-5")
@rows(
    "method, rule, says",
    ("BOOKING", "M211", "Write BOOK."),
    ("BOOK_TABLE", "M213", "Write BOOK /table."),
    ("SEARCH2", "M212", "Write SEARCH."),
    ("FindRestaurant", "M213", "Write FIND /restaurant."),
    ("AVAILABLE", "M231", "Write CHECK or FIND"),
    ("EXISTS", "M232", "Write CHECK or FIND"),
    ("STATUS", "M233", "Write CHECK or TRACK"),
    ("GET", "M230", "Write FETCH or RETRIEVE."),
    ("get", "M230", "Write FETCH or RETRIEVE."),
    ("CONNECT", "M230", "Write LINK or JOIN."),
    ("CANCLE", "M216", "Did you mean CANCEL?"),
    ("XQZ", "M216", "`DISCOVER /methods`"),
)
def test_a_method_against_the_grammar_is_a_454_with_rule_and_advice(method: str, rule: str, says: str) -> None:
    reply = clinic().send(method, "/visit", method_grammar="AGIS/1.0")
    assert (reply.status, reply.error["code"]) == (454, "grammar-violation")
    assert says in reply.error["message"]
    (finding,) = reply.error["findings"]
    assert finding["rule"] == rule
    assert says in finding["help"]


def shop(**methods: Any) -> Bench:
    verbs = ("GLAZE", "OPEN", "PROCESS", "FETCH")
    policies = Policies(methods=MethodPolicy(**methods))
    return build(*(make_endpoint(verb, "/pots", echo, capability="creation") for verb in verbs), policies=policies)


DECLARED = Vocabulary(declared_verbs=("BOOKING", "FLOOBLE"))


@pytest.mark.requirement("AGIS-4.1-7")
@rows(
    "bench, target, under_agis, otherwise",
    # AGIS compares methods without regard to case; without the header the catalog decides to the letter.
    (clinic(), "BOOK /visit", 200, 200),
    (clinic(), "book /visit", 200, 459),
    (clinic(), "Book /visit", 200, 459),
    # A verb of the vocabulary is a custom method, and so is one of the policy, whatever the lexicon says of it.
    (clinic(), "ADMIT /patient", 200, 200),
    (build(), "ADMIT /patient", 404, 459),
    (shop(custom=("GLAZE",)), "GLAZE /pots", 200, 200),
    (shop(), "OPEN /pots", 454, 200),
    (shop(custom=("OPEN",)), "OPEN /pots", 200, 200),
    # A declared verb is still checked for its form.
    (build(vocabulary=DECLARED, policies=Policies(methods=MethodPolicy(custom=("BOOKING",)))), "BOOKING /x", 454, 404),
    (build(vocabulary=DECLARED), "FLOOBLE /x", 404, 404),
    # A disallowed method stays disallowed, and a borderline verb passes.
    (clinic(policies=Policies(methods=MethodPolicy(disallow=("ADMIT",)))), "ADMIT /patient", 405, 405),
    (shop(), "PROCESS /pots", 200, 200),
    # A legacy verb is refused under AGIS even with opt-in.
    (shop(legacy=("GET",)), "GET /pots", 454, 200),
)
def test_grammar_judges_only_requests_asking_for_it(bench: Bench, target: str, under_agis: int, otherwise: int) -> None:
    method, path = target.split()
    for value in ("AGIS/1.0", "agis/1.0", " AGIS/1.0 "):
        assert bench.send(method, path, method_grammar=value).status == under_agis
    assert bench.send(method, path).status == otherwise


@pytest.mark.requirement("AGIS-1.3-1", "AGIS-13-15")
@pytest.mark.parametrize("verb", ["DISCHARGE", "BUCHEN", "discharge"])
def test_a_tier_4_method_reaches_routing_without_being_declared(verb: str) -> None:
    """AGIS 1.3: such a method is accepted without registration; only the endpoint is missing."""
    assert clinic().send(verb, "/patient", method_grammar="AGIS/1.0").refusal == (405, "method-not-allowed")
    assert clinic().send(verb, "/nowhere", method_grammar="AGIS/1.0").status == 404
    assert clinic().send(verb, "/patient").status == 459


@pytest.mark.parametrize("value", ["AGIS/2.0", "AGIS", "", "AMG/1.0", "x" * 5000])
def test_another_grammar_is_a_400_that_names_the_one_there_is(value: str) -> None:
    reply = clinic().send("BOOK", "/visit", method_grammar=value)
    assert (reply.status, reply.error["code"], reply.error["supported"]) == (400, "unsupported-grammar", ["AGIS/1.0"])
    assert len(reply.response.body) < 1000


def test_a_method_of_twenty_thousand_letters_is_refused_with_a_short_answer() -> None:
    reply = clinic().send("Q" * 20_000, method_grammar="AGIS/1.0")
    assert reply.status == 454
    assert len(reply.response.body) < 1000


@pytest.mark.process
def test_the_lexicon_is_not_read_before_the_first_use() -> None:
    code = """
from tests.service import build, echo, make_endpoint
from bespeak.text.language.lexicon import lexicon
bench = build(make_endpoint("BOOK", "/visit", echo))
print(bench.send("BOOK", "/visit").status, bench.send("BOOKING", "/visit").status, lexicon.cache_info().currsize)
print(bench.send("BOOK", "/visit", method_grammar="AGIS/1.0").status, lexicon.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["200 459 0", "200 1"]


@pytest.mark.process
@pytest.mark.requirement("AGIS-9.2-4", "AGIS-13-5")
def test_a_served_hotel_judges_methods_over_the_wire() -> None:
    grammar = {"Method-Grammar": "AGIS/1.0"}
    with serving() as served, connect_sync(served.uri) as hotel:
        refused = hotel.request("RESERVING", "/room", headers=grammar)
        assert (refused.status, refused.error.code) == (454, "grammar-violation")
        assert "Write RESERVE." in refused.error.message
        assert hotel.request("RESERVING", "/room").status == 459
        assert hotel.request("discover", "/methods", headers=grammar).status == 200
        assert hotel.request("DISCOVER", "/methods", headers={"Method-Grammar": "AGIS/9.9"}).status == 400


@pytest.mark.process
def test_a_server_that_is_not_asked_does_without_english_and_the_rules_of_documents() -> None:
    code = (
        "import sys, bespeak.app.server.assembly; "
        "idle = 'bespeak.text.language', 'bespeak.checks.lint.rule_index', 'yaml'; "
        "print([name for name in sys.modules if name.startswith(idle)])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


SESSION = secrets.token_urlsafe(16)


def told(context: Context) -> dict[str, Any]:
    return {"task": context.task_id, "session": context.session_id}


BOOK = make_endpoint("BOOK", "/room", told)
OWN = make_endpoint("EXECUTE", "/job", told, properties={"parameters": {"type": "object"}})


@pytest.mark.requirement("CORE-5.2-1")
def test_ids_of_the_envelope_are_echoed_and_empty_ones_left_alone() -> None:
    body = {"method": "BOOK", "task_id": "t-1", "session_id": SESSION, "parameters": {}}
    reply = build(BOOK).send("BOOK", "/room", body)
    assert (reply.json, reply.header("Task-ID")) == ({"task": "t-1", "session": SESSION}, "t-1")
    assert build(BOOK).send("BOOK", "/room", {"task_id": None, "parameters": {}}).json["task"] is None
    flat = make_endpoint("BOOK", "/room", told, properties={"task_id": {"type": "string"}})
    assert build(flat).send("BOOK", "/room", {"task_id": "mine"}).json["task"] is None
    assert build(OWN).send("EXECUTE", "/job", {"parameters": {}}).json["task"] is None


@pytest.mark.requirement("CORE-5.2-2", "CORE-9-3")
def test_headers_win_over_the_envelope_and_a_difference_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reply = build(BOOK).send("BOOK", "/room", {"task_id": "t-1", "parameters": {}}, task_id="t-2")
        assert (reply.json["task"], reply.header("Task-ID")) == ("t-2", "t-2")
        assert "task_id in a body differs" in caplog.text
        assert "t-1" not in caplog.text
        caplog.clear()
        assert build(BOOK).send("BOOK", "/room", {"task_id": "t-2", "parameters": {}}, task_id="t-2").status == 200
        assert "differs" not in caplog.text


@pytest.mark.parametrize("body", [{"task_id": 5}, {"task_id": "a\r\nEvil: y"}, {"task_id": ""}, {"session_id": "a b"}])
def test_an_id_that_no_header_can_carry_is_400(body: dict[str, Any]) -> None:
    reply = build(BOOK).send("BOOK", "/room", {**body, "parameters": {}})
    assert (reply.status, reply.error["field"]) == (400, f"/{next(iter(body))}")
    assert reply.header("Evil") is None


def test_headers_shared_with_other_requests_are_not_changed() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    headers = {"agent-id": "a" * 64}
    bench.send("BOOK", "/room", {"task_id": "t-1", "parameters": {}}, **headers)
    assert headers == {"agent-id": "a" * 64}


@pytest.mark.anyio
async def test_a_floor_method_finds_its_parameters_in_the_envelope(bench: StatefulBench) -> None:
    body = {"method": "ESCALATE", "task_id": "t-1", "parameters": {"reason": "ethical_flag"}, "context": {"n": 1.10}}
    assert (await bench.send("ESCALATE", "/", body)).gives("task_id") == (202, "t-1")


@pytest.mark.anyio
async def test_a_paused_task_and_a_suspended_session_are_recognized_in_the_envelope() -> None:
    async with keeping(BOOK) as bench:
        await bench.send("ESCALATE", "/", {"task_id": "t-1", "reason": "ethical_flag", "context": {}})
        assert (await bench.send("BOOK", "/room", {"task_id": "t-1", "parameters": {}})).error["code"] == "task-paused"
        body = {"session_id": SESSION, "parameters": {}}
        assert (await bench.send("BOOK", "/room", body)).status == 200
        assert (await bench.send("SUSPEND", "/", body)).status == 200
        assert (await bench.send("BOOK", "/room", body)).error["code"] == "session-suspended"
