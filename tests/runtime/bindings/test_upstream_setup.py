"""Upstreams: their description, credentials, connections, probes and outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.conftest import ROOM
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpServer, McpTool
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.bindings.external import (
    LONGEST_WAIT,
    check_setup,
    decode_text,
    rename,
    resolve_credentials,
    retry_after,
    upstream_url,
)
from bespeak.runtime.bindings.upstream import OUTPUT_INVALID, UpstreamCredentials, UpstreamOutcome, UpstreamPool
from bespeak.runtime.bindings.upstream_probe import probe_upstreams
from bespeak.text.diagnostics.diagnostic import Diagnostic

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t"


def service(**fields: Any) -> ExternalService:
    return ExternalService(**{"url": "https://u.example/rooms", "method": "GET", **fields})


def resolved(environment: Mapping[str, str], **fields: Any) -> UpstreamCredentials | list[Diagnostic]:
    return resolve_credentials(ROOM, service(**fields), environment)


@pytest.mark.parametrize(
    ("key", "member"), [("headers", "headers"), ("query_credentials", "query"), ("cookie_credentials", "cookies")]
)
def test_variables_are_taken_from_the_environment_in_every_place(key: str, member: str) -> None:
    found = resolved({"A": SECRET, "B": "2"}, **{key: {"name": "${A}.${B}"}})
    assert isinstance(found, UpstreamCredentials)
    assert getattr(found, member) == {"name": f"{SECRET}.2"}


@pytest.mark.parametrize("key", ["headers", "query_credentials", "cookie_credentials"])
def test_a_variable_that_is_not_set_is_named_and_its_value_shown_nowhere(key: str) -> None:
    found = resolved({"A": SECRET}, **{key: {"first": "${A}${MISSING}", "second": "${A}"}})
    assert isinstance(found, list)
    assert [finding.pointer for finding in found] == [f"/endpoint/handler/{key}/first"]
    assert "'MISSING'" in found[0].message
    assert SECRET not in str(found)


@rows(
    "key, name, value",
    ("headers", "X A", "1"),
    ("headers", "A", "1\r\nB: 2"),
    ("headers", "A", "é"),
    ("query_credentials", "", "1"),
    ("query_credentials", "key", "1\n2"),
    ("cookie_credentials", "a b", "1"),
    ("cookie_credentials", "sid", "1; admin=1"),
    ("cookie_credentials", "sid", "1 2"),
    ("cookie_credentials", "sid", "1\r\nB: 2"),
    ("cookie_credentials", "sid", "é"),
)
def test_a_credential_that_cannot_be_sent_is_found_without_being_shown(key: str, name: str, value: str) -> None:
    found = resolved({"V": f"{SECRET}{value}"}, **{key: {name: "${V}"}})
    assert isinstance(found, list)
    assert len(found) == 1
    assert SECRET not in str(found)


def test_credentials_are_encoded_and_renamed_fields_count_where_two_would_meet() -> None:
    assert isinstance(resolved({"V": "a b&c=é"}, query_credentials={"key": "${V}"}), UpstreamCredentials)
    assert rename({"a": 1, "b": 2, "c": 3}, {"a": "b"}) == {"b": 1, "c": 3}


@pytest.mark.parametrize("path", ["/{room_id}", "/files/{room_id}.json", "/{room_id}-{room_id}", "/x?a={room_id}"])
def test_placeholders_may_be_a_part_of_a_segment(path: str) -> None:
    handler = service(url=f"https://u.example{path}")
    assert check_setup(ROOM, handler) == []
    assert upstream_url(handler).host == "u.example"


@rows(
    "fields, count",
    ({"method": "POST"}, 1),
    ({"method": "POST", "query": ("a",)}, 0),
    ({"method": "POST", "query": ("a", "b")}, 1),
    ({"method": "GET", "query": ("a",)}, 1),
    ({"method": "POST", "query": ("a",), "body_field": "room_id"}, 1),
)
def test_one_upstream_name_may_occur_once_in_the_query_and_once_in_the_body(fields: dict[str, Any], count: int) -> None:
    handler = service(input_transform={"a": "id", "b": "id"}, **fields)
    assert len(check_setup(ROOM, handler)) == count


@rows(
    "body, charset, text",
    (b"caf\xc3\xa9", None, "café"),
    (b"caf\xe9", "ISO-8859-1", "café"),
    (b"caf\xe9", "windows-1252", "café"),
    ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
    ("é".encode("utf-16"), "utf-16", "é"),
    (b"", None, ""),
)
def test_a_text_is_read_by_its_charset(body: bytes, charset: str | None, text: str) -> None:
    assert decode_text(bytearray(body), charset, "identity") == text


@pytest.mark.parametrize("charset", ["idna", "punycode", "zlib", "rot13", "unicode_escape", "x" * 99, "utf-8\x00", ""])
def test_an_encoding_that_is_not_a_text_charset_is_refused(charset: str) -> None:
    with pytest.raises(ValueError, match="charset"):
        decode_text(b"abc", charset, None)


@pytest.mark.parametrize(
    ("body", "charset"), [(b"\xff", None), (b"\xff", "ascii"), (b"x", "utf-16"), (b"x", "iso-8859-12")]
)
def test_invalid_text_is_refused(body: bytes, charset: str | None) -> None:
    with pytest.raises(ValueError, match="charset"):
        decode_text(body, charset, None)


def test_a_compressed_text_is_refused_however_it_could_be_read() -> None:
    with pytest.raises(ValueError, match="compressed"):
        decode_text(b"\x1f\x8b", "latin-1", "gzip")


@given(st.binary(max_size=50), st.text(max_size=20) | st.none())
def test_no_text_and_no_charset_does_worse_than_a_refusal(body: bytes, charset: str | None) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(decode_text(body, charset, None), str)


@pytest.mark.parametrize("code", [429, 503])
@rows(
    "told, wait",
    ("7", "7"),
    (" 120 ", "120"),
    ("0", "1"),
    ("999999999999999999999", str(LONGEST_WAIT)),
    ("Fri, 31 Dec 9999 23:59:59 GMT", str(LONGEST_WAIT)),
    ("Wed, 21 Oct 2015 07:28:00 GMT", "1"),
)
def test_the_wait_an_upstream_asks_for_is_passed_on_within_bounds(code: int, told: str, wait: str) -> None:
    assert retry_after(code, {"retry-after": told}) == (("Retry-After", wait),)


@rows(
    "code, told",
    *((429, told) for told in ("", "soon", "-1", "1.5", "1e9", "٣", "Wed, 99 Oct 2015", "\x00")),
    *((code, "7") for code in (200, 404, 500)),
)
def test_an_invalid_retry_after_and_that_of_other_answers_is_omitted(code: int, told: str) -> None:
    assert retry_after(code, {"retry-after": told}) == ()


@given(st.text(max_size=40))
def test_any_text_is_a_wait_in_bounds_or_none(told: str) -> None:
    for _, wait in retry_after(503, {"retry-after": told}):
        assert 1 <= int(wait) <= LONGEST_WAIT


def outcome(impact: str = "irreversible", *, idempotent: bool = False, trusts: bool = False) -> UpstreamOutcome:
    made = make_endpoint("BOOK", "/room", echo)
    semantic = replace(made.semantic, impact=impact, is_idempotent=idempotent)
    schema: dict[str, Any] = {"type": "object", "required": ["room"]}
    output = compile_schema(schema)
    assert isinstance(output, Validator)
    return UpstreamOutcome(replace(made, semantic=semantic), output, trusts=trusts)


def test_valid_output_is_returned_and_invalid_output_is_final_or_trusted() -> None:
    assert outcome().check({"room": 1}, "It answered") == {"room": 1}
    found = outcome().check({}, "The upstream answered 200", 200)
    assert isinstance(found, Refused)
    assert (found.status, found.code, found.details["details"]["upstream_status"]) == (422, OUTPUT_INVALID, 200)
    assert isinstance(outcome(trusts=True).check({}, "The upstream answered 200"), Answer)


@rows(
    "impact, idempotent, said",
    ("irreversible", False, "do not repeat it without the same Idempotency-Key"),
    ("irreversible", True, "it is idempotent and may be repeated"),
    ("informational", True, ""),
)
def test_caller_is_told_whether_the_call_may_be_repeated(impact: str, idempotent: bool, said: str) -> None:
    found = outcome(impact, idempotent=idempotent).failed("upstream_timeout", "Late.", took_effect=True)
    assert said in found.message
    assert ("effect" in found.details.get("details", {})) == bool(said)


@rows(
    "first, second, shared",
    ("https://a.example/x", "https://a.example/y?z", True),
    ("https://a.example", "https://A.example:443/", True),
    ("https://a.example", "https://b.example", False),
    ("https://a.example", "https://a.example:444", False),
)
async def test_endpoints_of_one_host_and_port_share_their_connections(first: str, second: str, shared: bool) -> None:
    pool = UpstreamPool()
    assert (pool.transport(httpx.URL(first)) is pool.transport(httpx.URL(second))) is shared
    await pool.aclose()


async def test_a_closed_pool_is_empty_and_can_be_closed_again() -> None:
    pool = UpstreamPool()
    pool.transport(httpx.URL("https://a.example"))
    assert len(pool._transports) == 1
    await pool.aclose()
    await pool.aclose()
    assert len(pool._transports) == 0


def test_calls_leave_most_descriptors_of_the_process_to_others() -> None:
    assert UpstreamPool().places._value == resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8


BOOK = make_endpoint("BOOK", "/room", echo)


def bound(url: str, path: str = "/room", *, deferred: bool = False) -> Endpoint:
    return replace(BOOK, path=path, handler=ExternalService(url=url, method="GET", deferred=deferred))


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.requirement("API-13.2-15")
async def test_endpoints_of_an_upstream_that_does_not_answer_are_reported_as_deferred() -> None:
    url = f"https://127.0.0.1:{unused_port()}"
    endpoints = [bound(f"{url}/a", "/a"), bound(f"{url}/b", "/b"), bound(f"{url}/c", "/c", deferred=True), BOOK]
    findings = await probe_upstreams(endpoints)
    assert [(finding.rule, finding.severity) for finding in findings] == [("H707", "warning")] * 2
    assert all("deferred" in finding.message for finding in findings)
    assert [str(finding.message).split(":")[0] for finding in findings] == ["BOOK /a", "BOOK /b"]


async def test_each_upstream_that_answers_is_connected_to_once_and_sent_nothing() -> None:
    seen: list[bytes] = []
    done = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read())
        writer.close()
        done.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"https://127.0.0.1:{port}"
    assert await probe_upstreams([bound(f"{url}/a", "/a"), bound(f"{url}/b", "/b")]) == []
    await asyncio.wait_for(done.wait(), 10)
    assert seen == [b""]
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".example", "xn--\u00e4"])
async def test_a_host_that_cannot_be_resolved_is_reported(host: str) -> None:
    [finding] = await probe_upstreams([bound(f"https://{host}/")], seconds=20.0)
    assert "cannot be reached" in finding.message


async def test_program_of_an_mcp_server_is_only_looked_for() -> None:
    def calling(command: str, path: str) -> Endpoint:
        server = McpServer(tool="t", command=command)
        return replace(bound("https://127.0.0.1/", path), handler=McpTool(mcp=server))

    endpoints = [calling(sys.executable, "/a"), calling("surely-not-installed", "/b")]
    [finding] = await probe_upstreams(endpoints, environment={"PATH": "/bin"})
    assert finding.rule == "H707"
    assert "the program 'surely-not-installed' is not found" in finding.message
