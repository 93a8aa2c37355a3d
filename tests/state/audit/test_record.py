"""Payloads of attribution records: everything core 10.3 asks for, and nothing a caller wrote into its arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.state.audit.trails import ANN, make_sealer

from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.state.audit.record import (
    encode_header,
    jws_id,
    make_payload,
    parse_compact,
    payload_of,
    place_of,
    request_hash,
    roll,
)

AGENT = "a" * 64
NOW = datetime(2026, 5, 1, 12, 30, 1, 250_000, tzinfo=UTC).timestamp()
SECRET = "correct-horse-battery"


def a_request(
    method: str = "BOOK", path: str = "/room/12", query: str = "", body: bytes = b"", **headers: str
) -> Request:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, query, given, body, Connection())


def payload(request: Request | None = None, response: Response | None = None, **given: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "request": request or a_request(),
        "response": response or Response(200, b"{}"),
        "principal": ANONYMOUS,
        "method": "BOOK",
        "path": "/room/{number}",
        "server_id": "rooms.example",
        "issued_at": NOW,
    }
    made: dict[str, Any] = msgspec.to_builtins(make_payload(**(defaults | given)))
    return made


@pytest.mark.requirement("CORE-10.3-1")
def test_record_holds_the_request_and_its_result() -> None:
    made = payload(
        a_request(request_id="r-1", session_id="s-1", task_id="t-1", confirmation_id="c-1"),
        Response(200, b'{"room":12}', headers=(("Response-ID", "resp-7"),)),
        principal=Principal(AGENT, verified="mtls", principal_id="acme", delegators=("b" * 64,)),
        replayed=True,
    )
    assert msgspec.json.decode(msgspec.json.encode(made)) == {
        "audit_record_version": "1",
        "server_id": "rooms.example",
        "issued_at": "2026-05-01T12:30:01.250Z",
        "status": 200,
        "method": "BOOK",
        "path": "/room/{number}",
        "request_hash": sha256(b"BOOK /room/12\n").hexdigest(),
        "result_hash": sha256(b'{"room":12}').hexdigest(),
        "request_id": "r-1",
        "response_id": "resp-7",
        "session_id": "s-1",
        "task_id": "t-1",
        "case_id": "c-1",
        "agent_id": AGENT,
        "identity_assurance": "mtls",
        "owner_id": "acme",
        "principal_id": "acme",
        "delegators": ["b" * 64],
        "replayed": True,
    }


def test_unknown_fields_and_arguments_are_not_recorded() -> None:
    made = payload(path=None)
    assert "path" not in made
    assert not {"agent_id", "owner_id", "identity_assurance", "request_id", "replayed", "extra"} & made.keys()
    assert None not in made.values()
    request = a_request("PAY", f"/card/{SECRET}", f"pin={SECRET}", f'{{"pin":"{SECRET}"}}'.encode())
    made = payload(request, Response(200, SECRET.encode()), method="PAY", path="/card/{number}")
    assert SECRET not in msgspec.json.encode(made).decode()


@rows(
    "principal, assurance",
    (Principal(AGENT), "asserted"),
    (Principal(AGENT, known=True), "known"),
    (Principal(AGENT, known=True, verified="signed"), "signed"),
)
def test_record_holds_the_authentication_method(principal: Principal, assurance: str) -> None:
    assert payload(principal=principal)["identity_assurance"] == assurance


def test_configured_fields_are_recorded_and_long_ones_as_hash() -> None:
    assert payload(recorded={"guest_id": "g-1"})["extra"] == {"input": {"guest_id": "g-1"}}
    made = payload(recorded={"note": "n" * 5000, "guest_id": "g-1"})["extra"]["input"]
    told = sha256(b'"' + b"n" * 5000 + b'"').hexdigest()
    assert made == {"note": {"sha256": told, "bytes": 5002}, "guest_id": "g-1"}
    many = payload(recorded={f"field{number}": "v" * 500 for number in range(50)})
    assert len(msgspec.json.encode(many)) < 8000


def test_redirected_method_is_recorded_and_ids_chosen_by_callers_are_truncated() -> None:
    made = payload(a_request("GET"), method="QUERY")
    assert (made["method"], made["requested_method"]) == ("QUERY", "GET")
    assert len(payload(a_request(task_id="t" * 8000))["task_id"]) == 256


def test_hashes_depend_on_every_request_record_and_their_order() -> None:
    requests = [
        *(a_request(), a_request("QUOTE"), a_request(path="/room/13"), a_request(query="x=1")),
        *(a_request(body=b"{}"), a_request(path="/room/12\udcff")),
    ]
    assert len({request_hash(request) for request in requests}) == len(requests)
    one, two, start = b"1" * 32, b"2" * 32, bytes(32)
    assert len({roll(roll(start, one), two), roll(roll(start, two), one), roll(start, one), roll(start, two)}) == 4


def token(payload: bytes) -> str:
    return (encode_header({"alg": "none"}) + encode64(payload)).decode() + "."


def test_record_has_a_place_and_a_payload() -> None:
    sealer = make_sealer()
    sealer.learn(ANN, None)
    jws = sealer.seal(ANN, {"agent_id": ANN, "status": 200}).jws
    place = place_of(jws)
    assert (place.stream, place.sequence, place.agent_id, place.signing) == ("s1", 1, ANN, "each")
    assert payload_of(jws)["status"] == 200


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b"{", b"[" * 100_000, b'{"stream": 1}'])
def test_invalid_record_has_neither_place_nor_payload(payload: bytes) -> None:
    assert place_of(token(payload)) is None
    assert payload_of(token(payload)) == ({"stream": 1} if b"stream" in payload else None)


@pytest.mark.parametrize("text", ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "e30=.e30.", "bnVsbA.e30.x", "ä.e30."])
def test_invalid_jws_is_refused(text: str) -> None:
    assert parse_compact(text) is None


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    compact = parse_compact(text)
    assert compact is None or text == f"{compact.protected}.{encode64(compact.payload).decode()}.{compact.signature}"


@pytest.mark.requirement("CORE-12-4")
def test_the_id_is_the_hash_of_the_text() -> None:
    assert jws_id("a.b.c") == sha256(b"a.b.c").hexdigest()
