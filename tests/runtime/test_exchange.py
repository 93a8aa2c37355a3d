"""What the log may contain about a request."""

from __future__ import annotations

import logging
import sys

import pytest
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Exchange, Metrics, Subscriber, make_metrics, particulars_of_fault


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build(
        make_endpoint("QUERY", "/rooms/{room}/keys", echo, properties={"room": {}}), make_endpoint("QUERY", "/x", echo)
    )


def call(bench: Bench, path: str, method: str = "QUERY") -> Call:
    request = Request(method, path, "token=1", {"authorization": "Bearer x"}, b"{}", Connection(peer="192.0.2.1:99"))
    return Call(request, bench.server)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "/"),
        ("/rooms/12/keys", "/rooms/*/keys"),
        ("/rooms/keys/12", "/rooms/keys/*"),
        ("/{room}", "/*"),
        ("/nowhere", "/*"),
        ("/" + "a" * 5000, "/*"),
        ("/x" * 5000, "/x" * 19),
    ],
)
def test_a_path_that_leads_nowhere_shows_the_words_of_contracts_alone(bench: Bench, path: str, shown: str) -> None:
    assert Exchange(call(bench, path), Response(404)).path == shown


def test_an_endpoint_is_named_by_its_template(bench: Bench) -> None:
    found = call(bench, "/rooms/12/keys")
    found.principal = Principal(agent_id=AGENT, principal_id="acme")
    route = bench.routes.router.find("QUERY", "/rooms/12/keys")
    assert route is not None
    routed = RoutedCall(found, *route)
    headers = (("Response-ID", "p"), ("Task-ID", "t" * 500), ("Audit-ID", "a"), ("Set-Secret", "s"))
    assert Exchange(routed, Response(200, headers=headers)).particulars == {
        "response_id": "p",
        "task_id": "t" * 128,
        "audit_id": "a",
        "agent_id": AGENT,
        "principal_id": "acme",
        "claimed_agent_id": None,
        "method": "QUERY",
        "path": "/rooms/{room}/keys",
        "status": 200,
        "peer": "192.0.2.1:99",
    }


@pytest.mark.parametrize(
    ("given", "words"), [(None, "anonymous"), ("hush", "anonymous"), (AGENT, f"a caller claiming to be {AGENT}")]
)
def test_a_caller_refused_before_identification_has_only_a_claimed_id(
    bench: Bench, given: str | None, words: str
) -> None:
    found = call(bench, "/x")
    if given is not None:
        found.request.headers["agent-id"] = given  # type: ignore[index]
    told = Exchange(found, Response(401))
    assert (told.particulars["agent_id"], told.caller) == (None, words)
    found.principal = Principal(agent_id="b" * 64)
    told = Exchange(found, Response(200))
    assert (told.claimed_agent_id, told.caller) == (None, "b" * 64)


def test_an_invalid_request_is_logged_with_answer_and_peer() -> None:
    told = particulars_of_fault(Connection(peer="192.0.2.1:99"), 400, [("Response-ID", "p")])
    assert told == {"response_id": "p", "status": 400, "peer": "192.0.2.1:99"}


def answered(*subscribers: Subscriber) -> Dispatcher:
    server = build(make_endpoint("QUERY", "/rooms/{room}", echo, properties={"room": {}})).server
    return Dispatcher(server, subscribers=subscribers)


def test_every_subscriber_gets_every_exchange_once() -> None:
    first: list[Exchange] = []
    second: list[Exchange] = []
    dispatcher = answered(first.append, second.append)
    for method, path in (("QUERY", "/rooms/12"), ("BOOK", "/rooms/12"), ("FROB", "/"), ("DISCOVER", "/methods")):
        dispatcher(Request(method, path, "", {}, b"", Connection(face="http")))
    assert first == second
    told = [(one.method, one.path, one.response.status, one.refusal, one.face) for one in first]
    assert told == [
        ("QUERY", "/rooms/{room}", 200, None, "http"),
        ("BOOK", "/rooms/*", 405, "method-not-allowed", "http"),
        ("FROB", "/", 459, "method-violation", "http"),
        ("DISCOVER", "/methods", 200, None, "http"),
    ]
    assert all(one.seconds is not None and 0 < one.seconds < 60 for one in first)


FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties={"room_id": {"type": "string"}})


def counted(*targets: str) -> str:
    bench = build(FIND)
    metrics = Metrics()
    dispatcher = Dispatcher(bench.dispatcher.server, subscribers=(metrics,))
    bench.dispatcher = dispatcher
    for target in targets:
        method, path = target.split(" ")
        bench.send(method, path, agent_id=AGENT)
    metrics.gauge("bespeak_agtp_connections", "Open connections.", lambda: 3.0)
    return metrics.write()[0].decode()


def test_answers_are_counted_by_endpoint_and_status() -> None:
    text = counted("FIND /rooms/1", "FIND /rooms/2")
    assert 'bespeak_requests_total{face="agtp",method="FIND",path="/rooms/{room_id}",status="200"} 2.0' in text
    assert 'bespeak_request_seconds_count{face="agtp",method="FIND",path="/rooms/{room_id}"} 2.0' in text
    assert "bespeak_agtp_connections 3.0" in text
    assert "process_open_fds" in text


def test_names_that_callers_invent_do_not_become_labels() -> None:
    text = counted(*(f"FIND /secret-{number}" for number in range(50)), "XYZZY /rooms/1")
    assert "secret" not in text
    assert "XYZZY" not in text
    assert 'bespeak_requests_total{face="agtp",method="-",path="-",status="404"} 50.0' in text


@pytest.mark.anyio
async def test_paths_that_agents_propose_do_not_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    async with negotiating() as bench:
        monkeypatch.setattr(bench.bench.dispatcher, "_subscribers", (metrics,))
        await bench.send("PROPOSE", "/", lodgings())
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 200
        text = metrics.write()[0].decode()
        assert "lodgings" not in text
        assert 'method="FIND",path="(synthesis)",status="200"' in text


def test_without_the_extra_the_log_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with caplog.at_level(logging.WARNING):
        assert make_metrics() is None
    assert "pip install 'bespeak[metrics]'" in caplog.text
