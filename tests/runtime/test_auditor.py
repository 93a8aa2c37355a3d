"""Which answers are recorded, and the content of their records."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import REPLAYED, Auditor, Exchange
from bespeak.state.audit.record import Payload
from bespeak.state.store.store import Sealed

BOOK = make_endpoint("BOOK", "/room/{number}", echo, properties={"number": {"type": "string"}, "guest": {}})
SEALED = Sealed("e" * 64, "s", 1, AGENT, "a.b.c")


def call(method: str = "BOOK", path: str = "/room/12", *, agent: str | None = AGENT, **given: Any) -> Call:
    server = build(BOOK).server
    made = Call(Request(method, path, "", {}, b"", Connection()), server)
    made.principal = Principal(agent)
    found = server.routes.router.find(method, path)
    if found is None:
        return made
    routed = RoutedCall(made, *found)
    routed.input = given
    return routed


def auditor(**settings: Any) -> Auditor:
    return Auditor("rooms", **({"attributes": True, "clock": lambda: 1_777_000_000.5} | settings))


def test_acting_endpoints_are_recorded_and_informational_ones_are_not() -> None:
    assert auditor().audits(call(agent=None))
    assert auditor().audits(call("SUSPEND", "/"))
    assert not auditor().audits(call("DISCOVER", "/"))
    assert auditor(discovery=True).audits(call("DISCOVER", "/"))


@pytest.mark.parametrize(("agent", "recorded"), [(AGENT, True), (None, False)])
def test_callers_that_reach_no_endpoint_do_not_fill_the_trail(agent: str | None, recorded: bool) -> None:
    assert auditor().audits(call("BOOK", "/nowhere", agent=agent)) is recorded


def test_a_record_has_the_template_of_the_path_and_no_input() -> None:
    entry = auditor().entry(Exchange(call(number="12", guest="Ann"), Response(200, b"{}", headers=(REPLAYED,))))
    assert entry.agent_id == AGENT
    assert isinstance(entry.payload, Payload)
    assert (entry.payload.path, entry.payload.replayed) == ("/room/{number}", True)
    assert entry.payload.issued_at == "2026-04-24T03:06:40.500Z"
    assert entry.payload.extra is None


@pytest.mark.parametrize(("face", "recorded"), [("agtp", None), ("http", "http"), ("mcp", "mcp")])
def test_a_record_names_the_face_unless_it_is_agtp(face: str, recorded: str | None) -> None:
    made = call()
    connection = Connection(peer="x:1", address="x").seen_as(face)
    made.request = structs.replace(made.request, connection=connection)
    payload = auditor().entry(Exchange(made, Response(200, b"{}"))).payload
    assert isinstance(payload, Payload)
    assert payload.face == recorded
    assert (connection.peer, connection.address) == ("x:1", "x")


def test_input_is_recorded_where_it_was_named_and_sent() -> None:
    fields = {("BOOK", "/room/{number}"): ("guest", "number")}
    entry = auditor(fields=fields).entry(Exchange(call(guest="Ann", other="x"), Response(200, b"{}")))
    assert isinstance(entry.payload, Payload)
    assert entry.payload.extra == {"input": {"guest": "Ann"}}


def test_the_response_names_its_record_and_carries_it_if_it_is_signed() -> None:
    assert auditor().headers(SEALED) == (("Audit-ID", "e" * 64), ("Attribution-Record", "a.b.c"))
    assert auditor(attributes=False).headers(SEALED) == (("Audit-ID", "e" * 64),)
