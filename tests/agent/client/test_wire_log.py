"""The log of the wire shows what is sent and received, and no secret."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.streams import serving

from bespeak import connect
from bespeak.agent.client.sender import WIRE_LOGGER, is_wire_logged, log_received, log_sent
from bespeak.protocol.wire.messages import ResponseMessage

pytestmark = pytest.mark.anyio
KEY = "bsk_0123456789ab_" + "c0ffee" * 8
JWT = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def _shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, WIRE_LOGGER)


def test_request_and_response_are_shown_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    assert is_wire_logged()
    log_sent("AGTP/1.0 QUERY /rooms", [("Agent-ID", "a" * 64), ("Authority-Scope", "rooms:read")], b'{"beds":2}')
    log_received("AGTP/1.0", ResponseMessage(200, "OK", {"idempotency-key": "k-1"}, b"{}\n{}"))
    assert [record.getMessage().split("\n") for record in caplog.records] == [
        ["> AGTP/1.0 QUERY /rooms", f"> Agent-ID: {'a' * 64}", "> Authority-Scope: rooms:read", ">", '> {"beds":2}'],
        ["< AGTP/1.0 200 OK", "< idempotency-key: k-1", "<", "< {}", "< {}"],
    ]


@rows("face", "agtp", "http")
async def test_a_stream_is_shown_with_its_request(caplog: pytest.LogCaptureFixture, face: str) -> None:
    async with serving() as served, connect(served.uri(face)) as service:
        caplog.clear()
        count = len([item async for item in service.stream("QUERY", "/rooms", count=2)])
    sent, *received = [record.getMessage() for record in caplog.records if record.name == WIRE_LOGGER]
    assert count == 2
    assert sent.splitlines()[0].startswith("> AGTP/1.0 QUERY /rooms" if face == "agtp" else "> POST /rooms:query")
    assert received
    assert all(text.startswith("< ") for text in received)


@rows(
    "name, value, shown",
    ("Authorization", f"Bearer {KEY}", "Bearer bsk_0123456789ab_***"),
    ("authorization", f"Bearer {JWT}", "Bearer ***"),
    ("Authorization", "Basic YTpiYw==", "Basic ***"),
    ("X-API-Key", KEY, "bsk_0123456789ab_***"),
    ("X-Api-Key", "of-another-service", "***"),
    ("Cookie", "session=hush; theme=dark", "***"),
    ("Agent-Signature", "agtp1;key=k;signature=abc", "***"),
    ("Delegation-Chain", f"{JWT}, {JWT}", "***, ***"),
    ("X-Auth-Token", "hush", "***"),
    ("Idempotency-Key", "k-1", "k-1"),
    ("WWW-Authenticate", 'Bearer realm="rooms"', 'Bearer realm="rooms"'),
)
def test_secrets_in_headers_are_masked(caplog: pytest.LogCaptureFixture, name: str, value: str, shown: str) -> None:
    log_sent("AGTP/1.0 QUERY /", [(name, value)], b"")
    assert caplog.records[-1].getMessage().split("\n")[1] == f"> {name}: {shown}"


def test_secrets_in_bodies_and_queries_are_masked_and_long_bodies_cut(caplog: pytest.LogCaptureFixture) -> None:
    log_sent("GET /a?api_key=hush&beds=2&token=hush HTTP/1.1", [], f'{{"key":"{KEY}","token":"{JWT}"}}'.encode())
    text = caplog.records[-1].getMessage()
    assert "GET /a?api_key=***&beds=2&token=*** HTTP/1.1" in text
    assert '{"key":"bsk_0123456789ab_***","token":"***"}' in text
    log_received("HTTP/1.1", ResponseMessage(200, "OK", {}, b"x" * 100_000))
    assert len(caplog.records[-1].getMessage()) < 20_000
    assert "100000 bytes in all" in caplog.records[-1].getMessage()


@given(before=st.text(max_size=20), body=st.binary(max_size=50), name=st.sampled_from(["Authorization", "X-Note"]))
def test_no_key_or_token_passes(before: str, body: bytes, name: str) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign] # the one thing a handler does
    logging.getLogger(WIRE_LOGGER).addHandler(handler)
    log_sent(f"AGTP/1.0 QUERY /?q={before}{KEY}", [(name, f"{before}{KEY}, {JWT}")], body + KEY.encode())
    logging.getLogger(WIRE_LOGGER).removeHandler(handler)
    text = records[-1].getMessage()
    assert "c0ffee" not in text
    assert "c2lnbmF0dXJl" not in text
