"""Agent-Signature: good for one server, one request and a short time; any change on the way shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.jws import sign_detached
from bespeak.state.identity.signed_request import AHEAD, COVERED, SignedRequest, sign_request, verify_signed

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
AGENT = "a" * 64
SERVER = "rooms.acme.example"
NOW = 1_800_000_000.5
MAX_AGE = 300.0
EVERY = {name: f"value of {name}" for name in COVERED}
GOOD = {"alg": "EdDSA", "created": int(NOW), "nonce": "n" * 22}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+ "


def request(
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "BOOK",
    target: str = "/room?beds=2",
    body: bytes = b'{"room":12}',
    agent_id: str | None = AGENT,
) -> Request:
    path, _, query = target.partition("?")
    named = {"agent-id": agent_id} if agent_id is not None else {}
    return Request(method, path, query, {**named, **(headers or {})}, body, Connection())


def signed(plain: Request, *, now: float = NOW, server_id: str = SERVER, key: Ed25519PrivateKey = KEY) -> Request:
    target = f"{plain.path}?{plain.query}" if plain.query else plain.path
    value = sign_request(plain.method, target, plain.headers, plain.body, key=key, server_id=server_id, now=now)
    return changed(plain, headers={**plain.headers, "agent-signature": value})


def changed(plain: Request, **members: Any) -> Request:
    values = {name: getattr(plain, name) for name in ("method", "path", "query", "headers", "body", "connection")}
    return Request(**{**values, **members})


def key_of(agent_id: str) -> Ed25519PublicKey | None:
    return KEY.public_key() if agent_id == AGENT else None


def judge(arrived: Request, *, now: float = NOW) -> SignedRequest | Refused | None:
    return verify_signed(arrived, server_id=SERVER, key_of=key_of, now=now, max_age=MAX_AGE)


def code(arrived: Request, *, now: float = NOW) -> str:
    verdict = judge(arrived, now=now)
    assert isinstance(verdict, Refused)
    assert verdict.status == 401
    return verdict.code


def test_request_without_a_signature_is_ignored_and_every_signature_has_its_own_nonce() -> None:
    assert judge(request()) is None
    verdicts = [judge(signed(request())) for _ in range(50)]
    nonces = {verdict.nonce for verdict in verdicts if isinstance(verdict, SignedRequest)}
    assert len(nonces) == 50
    assert all(len(decode64(nonce) or b"") >= 16 for nonce in nonces)


@pytest.mark.parametrize("headers", [{}, EVERY, {"authority-scope": ""}])
@pytest.mark.parametrize("target", ["/", "/room?beds=2", "/room?", "/a%20b?x=%3F&y=?"])
def test_unchanged_signed_request_is_accepted(headers: dict[str, str], target: str) -> None:
    verdict = judge(signed(request(headers, target=target)))
    assert isinstance(verdict, SignedRequest)
    assert (verdict.agent_id, verdict.created, verdict.expires) == (AGENT, int(NOW), int(NOW) + MAX_AGE + AHEAD)


def test_header_names_are_signed_in_any_case_and_uncovered_headers_may_be_added() -> None:
    plain = request({"task-id": "t"})
    value = sign_request(
        "BOOK", "/room?beds=2", {"Agent-ID": AGENT, "Task-ID": "t"}, plain.body, key=KEY, server_id=SERVER, now=NOW
    )
    assert isinstance(judge(changed(plain, headers={**plain.headers, "agent-signature": value})), SignedRequest)
    arrived = signed(request())
    assert isinstance(judge(changed(arrived, headers={**arrived.headers, "request-id": "r"})), SignedRequest)


@rows(
    "members",
    *({"method": "CANCEL"}, {"path": "/suite"}, {"query": "beds=3"}, {"query": ""}),
    *({"path": "/room?beds=2", "query": "x"}, {"body": b""}, {"body": b'{"room":13}'}),
)
def test_a_changed_request_is_refused(members: dict[str, Any]) -> None:
    assert code(changed(signed(request(EVERY)), **members)) == "signature-invalid"


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("value", ["", "other", None])
def test_a_covered_header_cannot_be_changed_or_removed(name: str, value: str | None) -> None:
    arrived = signed(request(EVERY))
    headers = {key: text for key, text in arrived.headers.items() if key != name}
    assert code(changed(arrived, headers={**headers, **({name: value} if value is not None else {})})) == (
        "signature-invalid"
    )


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("value", ["", "added"])
def test_a_covered_header_cannot_be_added(name: str, value: str) -> None:
    arrived = signed(request())
    assert code(changed(arrived, headers={**arrived.headers, name: value})) == "signature-invalid"


def test_line_break_in_a_value_does_not_forge_a_second_header() -> None:
    arrived = signed(request({"session-id": "s", "task-id": "t"}))
    kept = {name: arrived.headers[name] for name in ("agent-id", "agent-signature")}
    assert code(changed(arrived, headers={**kept, "session-id": "s\ntask-id: t"})) == "signature-invalid"
    with pytest.raises(ValueError, match="one line"):
        signed(request({"session-id": "s\ntask-id: t"}))


@pytest.mark.parametrize("other", [{"server_id": "other.example"}, {"key": Ed25519PrivateKey.generate()}])
def test_a_signature_for_another_server_or_by_another_key_is_refused(other: dict[str, Any]) -> None:
    assert code(signed(request(), **other)) == "signature-invalid"


def test_signature_of_another_unknown_or_missing_agent_is_refused() -> None:
    arrived = signed(request())
    other = changed(arrived, headers={**arrived.headers, "agent-id": "b" * 64})
    verdict = verify_signed(other, server_id=SERVER, key_of=lambda _: KEY.public_key(), now=NOW, max_age=MAX_AGE)
    assert isinstance(verdict, Refused)
    assert verdict.code == "signature-invalid"
    assert code(signed(request(agent_id="b" * 64))) == "agent-key-unknown"
    arrived = signed(request())
    assert code(changed(arrived, headers={"agent-signature": arrived.headers["agent-signature"]})) == "agent-id-missing"


@pytest.mark.parametrize(
    ("age", "good"), [(0, True), (MAX_AGE, True), (MAX_AGE + 1, False), (-AHEAD, True), (-AHEAD - 1, False)]
)
def test_signature_is_accepted_during_its_lifetime(age: float, good: bool) -> None:
    created = 1_800_000_000
    arrived = signed(request(), now=created)
    if good:
        assert isinstance(judge(arrived, now=created + age), SignedRequest)
    else:
        assert code(arrived, now=created + age) == "signature-expired"


def envelope(header: object, *, key: Ed25519PrivateKey = KEY) -> str:
    return sign_detached({}, b"", key).replace("e30", encode64(json.dumps(header).encode()).decode(), 1)


@rows(
    "value",
    *("", "x", "..", "a.b.c", "e30..AA", envelope([]), envelope({}), envelope({**GOOD, "alg": "none"})),
    *(envelope({**GOOD, "created": int(NOW) + 0.5}), envelope({**GOOD, "alg": "HS256"})),
    *(envelope({**GOOD, "created": "now"}), envelope({**GOOD, "created": 1.5})),
    *(envelope({**GOOD, "created": True}), envelope({**GOOD, "nonce": "n" * 21})),
    *(envelope({**GOOD, "nonce": "n" * 129}), envelope({**GOOD, "nonce": "n" * 21 + "\n"})),
    *(envelope({**GOOD, "crit": ["b64"], "b64": False}), envelope({**GOOD, "padding": "x" * 2000})),
    *(envelope(GOOD)[:-1], envelope(GOOD).replace("..", ".AAAA."), "\ud800..x"),
)
def test_invalid_signature_text_is_malformed(value: str) -> None:
    assert code(request({"agent-signature": value})) == "signature-malformed"


@pytest.mark.parametrize("created", [10**18, -(10**18), 10**400, -(10**400)])
def test_time_out_of_range_is_refused(created: int) -> None:
    assert code(request({"agent-signature": envelope({**GOOD, "created": created})})) == "signature-expired"


def test_refusals_do_not_quote_the_signature_or_the_nonce() -> None:
    arrived = signed(request())
    bad = [
        changed(arrived, body=b""),
        changed(arrived, headers={**arrived.headers, "agent-id": "b" * 64}),
        changed(arrived, headers={**arrived.headers, "agent-signature": arrived.headers["agent-signature"] + "x"}),
    ]
    for one in bad:
        said = repr(judge(one))
        assert arrived.headers["agent-signature"][-40:] not in said


@given(st.data())
@settings(max_examples=200)
def test_a_signature_with_one_other_character_is_refused(data: st.DataObject) -> None:
    arrived = signed(request(EVERY))
    value = arrived.headers["agent-signature"]
    place = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.sampled_from(ALPHABET))
    assume(value[place] != other)
    broken = value[:place] + other + value[place + 1 :]
    assert isinstance(judge(changed(arrived, headers={**arrived.headers, "agent-signature": broken})), Refused)


@given(st.text(max_size=120), st.text(max_size=120))
@settings(max_examples=300)
def test_random_text_is_refused_without_exception(first: str, second: str) -> None:
    encoded = encode64(first.encode("utf-8", "replace")).decode()
    for value in (first, f"{first}..{second}", f"{encoded}..{'A' * 86}", f"{encoded}..{second}"):
        assert isinstance(judge(request({"agent-signature": value})), Refused)


@given(st.dictionaries(st.sampled_from(COVERED), st.text(max_size=20)), st.text(max_size=20), st.binary(max_size=20))
def test_any_request_is_signed_and_accepted_or_not_signed(headers: dict[str, str], query: str, body: bytes) -> None:
    plain = changed(request(headers, body=body), query=query)
    try:
        arrived = signed(plain)
    except ValueError:
        assert any("\n" in text or "\r" in text or not _is_text(text) for text in (*headers.values(), query))
        return
    assert isinstance(judge(arrived), SignedRequest)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_a_signature_made_by_hand_as_the_guide_says_is_accepted() -> None:
    header = encode64(b'{"alg":"EdDSA","created":1800000000,"nonce":"AAAAAAAAAAAAAAAAAAAAAA"}')
    content = (
        "agtp-signed-request/1\n"
        "audience: rooms.acme.example\n"
        f"agent-id: {AGENT}\n"
        "method: BOOK\n"
        "target: /room?beds=2\n"
        f"body: {hashlib.sha256(b'{}').hexdigest()}\n"
        "created: 1800000000\n"
        "nonce: AAAAAAAAAAAAAAAAAAAAAA\n"
        "authority-scope: booking:room, rooms:read\n"
        "task-id: t-1"
    )
    signature = encode64(KEY.sign(header + b"." + encode64(content.encode())))
    headers = {"authority-scope": "booking:room, rooms:read", "task-id": "t-1"}
    value = f"{header.decode()}..{signature.decode()}"
    arrived = request({**headers, "agent-signature": value}, body=b"{}")
    assert judge(arrived) == SignedRequest(AGENT, "A" * 22, 1_800_000_000, 1_800_000_300.0 + AHEAD)
