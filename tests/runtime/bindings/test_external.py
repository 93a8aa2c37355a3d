"""The external_service binding against real HTTPS upstreams on loopback, well-behaved and otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
import trustme
from tests.cases import rows
from tests.compositions import TEXT, compose, given, recipe, step
from tests.service import build, echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.messages import Connection, Context, Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.bindings.external import ExternalBinding, bind_external
from bespeak.runtime.bindings.upstream import MAX_RESPONSE_BYTES, UpstreamPool
from bespeak.text.diagnostics.diagnostic import Diagnostic

pytestmark = pytest.mark.anyio

AGENT = "ab" * 32
CONTEXT = Context(
    Request(
        "BOOK",
        "/room",
        "",
        {"agent-id": AGENT, "authority-scope": "booking:room", "task-id": "t-1", "session-id": "s-1"},
        b"",
        Connection(),
    ),
    Principal(AGENT, Scopes(["booking:room"])),
    "BOOK",
    "/room",
    {},
)


@dataclass
class Seen:
    """One request as the upstream got it."""

    line: str
    headers: dict[str, str]
    body: bytes


Respond = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Upstream:
    """A scripted HTTPS server."""

    url: str
    tls: ssl.SSLContext
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def contexts(authority: trustme.CA) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


@contextlib.asynccontextmanager
async def upstream(authority: trustme.CA, respond: Respond) -> AsyncIterator[Upstream]:
    server_tls, client_tls = contexts(authority)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])
                }
                seen = Seen(head[0], headers, await reader.readexactly(int(headers.get("content-length", "0"))))
                here.seen.append(seen)
                await respond(seen, writer)
                if writer.is_closing():
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls)
    here = Upstream(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", client_tls)
    try:
        yield here
    finally:
        server.close()


def answer(code: int, body: bytes = b"{}", *extra: str) -> Respond:
    async def respond(seen: Seen, writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {code} Whatever", f"Content-Length: {len(body)}", *extra, "", ""]
        writer.write("\r\n".join(head).encode() + body)
        await writer.drain()

    return respond


def endpoint(handler: ExternalService, **properties: Mapping[str, Any]) -> Endpoint:
    return Endpoint(
        method="BOOK",
        path="/room",
        description="Book a room.",
        semantic=Semantic(
            intent="Book a room.",
            actor="agent",
            outcome="A room is booked.",
            capability="transaction",
            confidence=0.9,
            impact="irreversible",
            is_idempotent=False,
        ),
        input_schema={"type": "object", "properties": properties, "additionalProperties": False},
        output_schema={"type": "object"},
        errors=(
            *(DeclaredError(name) for name in UPSTREAM_ERRORS),
            DeclaredError("room_unavailable", "The room is taken."),
            DeclaredError("undescribed"),
        ),
        handler=handler,
    )


def bound(
    url: str, tls: ssl.SSLContext | None, environment: Mapping[str, str] | None = None, **fields: Any
) -> ExternalBinding:
    handler = ExternalService(url=url, **{"method": "POST", **fields})
    contract = endpoint(handler, room_id={"type": "string"}, guest_id={"type": "string"})
    binding = bind_external(contract, handler, environment or {}, pool=UpstreamPool(tls))
    assert isinstance(binding, ExternalBinding), binding
    return binding


@contextlib.asynccontextmanager
async def facade(
    authority: trustme.CA, respond: Respond, path: str = "/", **fields: Any
) -> AsyncIterator[tuple[ExternalBinding, Upstream]]:
    async with upstream(authority, respond) as server:
        binding = bound(server.url + path, server.tls, **fields)
        try:
            yield binding, server
        finally:
            await binding.aclose()


async def test_a_call_waits_for_its_place_within_its_own_timeout(authority: trustme.CA) -> None:
    async with upstream(authority, answer(200)) as server:
        pool = UpstreamPool(server.tls, most=1)
        for seconds in (0.1, 20.0):
            handler = ExternalService(url=server.url, method="POST", timeout_seconds=seconds)
            binding = bind_external(endpoint(handler), handler, {}, pool=pool)
            assert isinstance(binding, ExternalBinding)
            if seconds < 1:
                async with pool.places:
                    assert (await refusal(binding)).code == "upstream_timeout"
            else:
                assert not isinstance(await binding.call({}, CONTEXT), Refused)
        await pool.aclose()


async def refusal(binding: ExternalBinding, **given: Any) -> Refused:
    result = await binding.call(given, CONTEXT)
    assert isinstance(result, Refused), result
    assert result.status == 422
    return result


def findings(url: str, environment: Mapping[str, str] | None = None, **fields: Any) -> list[Diagnostic]:
    handler = ExternalService(url=url, **{"method": "POST", **fields})
    found = bind_external(
        endpoint(handler, room_id={"type": "string"}), handler, environment or {}, pool=UpstreamPool()
    )
    assert isinstance(found, list)
    assert all(finding.severity == "error" for finding in found)
    return found


RESERVED = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def checked(url: str, tls: ssl.SSLContext, *, trusts: bool = False, **semantic: Any) -> ExternalBinding:
    handler = ExternalService(url=url, method="POST")
    contract = endpoint(handler)
    contract = replace(contract, output_schema=RESERVED, semantic=replace(contract.semantic, **semantic))
    output = compile_schema(RESERVED)
    assert isinstance(output, Validator)
    binding = bind_external(contract, handler, {}, pool=UpstreamPool(tls), output=output, trusts=trusts)
    assert isinstance(binding, ExternalBinding)
    return binding


@rows(
    "semantic, advice",
    ({}, "may have taken effect: do not repeat it without the same Idempotency-Key."),
    ({"is_idempotent": True}, "may have taken effect; it is idempotent and may be repeated."),
    ({"impact": "informational", "capability": "retrieval"}, "breaks the output schema of BOOK /room."),
)
@pytest.mark.parametrize(("code", "body"), [(201, b'{"id": 7}'), (200, b"[]"), (204, b"")])
async def test_answer_that_breaks_the_schema_says_what_happened(
    authority: trustme.CA, semantic: dict[str, Any], advice: str, code: int, body: bytes
) -> None:
    async with upstream(authority, answer(code, body)) as server:
        binding = checked(server.url, server.tls, **semantic)
        refused = await refusal(binding)
        await binding.aclose()
    assert refused.code == "upstream-output-invalid"
    assert refused.message.startswith(f"The upstream answered {code}, but its answer breaks the output schema")
    assert refused.message.endswith(advice)
    effect = {} if "impact" in semantic else {"effect": "possible"}
    assert refused.details == {"details": {"upstream_status": code, **effect}}
    assert "Retry-After" not in dict(refused.headers)


async def test_invalid_answer_of_a_trusted_upstream_is_passed_on_and_logged(
    authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    async with upstream(authority, answer(201, b'{"id": 7, "secret": "s3"}')) as server:
        binding = checked(server.url, server.tls, trusts=True)
        passed = await binding.call({}, CONTEXT)
        await binding.aclose()
    assert isinstance(passed, Answer)
    assert json.loads(passed.body) == {"id": 7, "secret": "s3"}
    assert "/properties/id/type" in caplog.text
    assert "s3" not in caplog.text


@pytest.mark.parametrize("trusts", [False, True])
async def test_valid_answer_is_returned_unchanged(authority: trustme.CA, trusts: bool) -> None:
    async with upstream(authority, answer(200, b'{"id": "r-1"}')) as server:
        binding = checked(server.url, server.tls, trusts=trusts)
        assert await binding.call({}, CONTEXT) == {"id": "r-1"}
        await binding.aclose()


async def test_the_input_goes_out_as_json_and_the_answer_comes_back(authority: trustme.CA) -> None:
    async with facade(authority, answer(200, b'{"reservation_id": "r-1"}'), "/booking") as (binding, server):
        assert await binding.call({"room_id": "12", "nights": 2}, CONTEXT) == {"reservation_id": "r-1"}
    assert server.seen[0].line == "POST /booking HTTP/1.1"
    assert json.loads(server.seen[0].body) == {"room_id": "12", "nights": 2}
    assert server.seen[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("code", "body", "method", "output"),
    [(200, b"", "HEAD", {}), (204, b"", "POST", {}), (200, b"[1, 2]", "POST", [1, 2])],
)
async def test_an_answer_without_a_body_is_an_empty_output_and_a_list_stays_one(
    authority: trustme.CA, code: int, body: bytes, method: str, output: Any
) -> None:
    async with facade(authority, answer(code, body), method=method) as (binding, _):
        assert await binding.call({}, CONTEXT) == output


@pytest.mark.requirement("API-12.3-5", "API-12.3-6")
async def test_fields_are_renamed_both_ways_and_others_pass(authority: trustme.CA) -> None:
    body = b'{"confirmationNumber": "c-1", "price": 90, "note": null}'
    async with facade(
        authority,
        answer(201, body),
        input_transform={"guest_id": "guestId"},
        output_transform={"confirmation_code": "confirmationNumber"},
    ) as (binding, server):
        output = await binding.call({"guest_id": "g", "room_id": "12"}, CONTEXT)
    assert json.loads(server.seen[0].body) == {"guestId": "g", "room_id": "12"}
    assert output == {"confirmation_code": "c-1", "price": 90, "note": None}
    async with facade(authority, answer(200), input_transform={"a": "b", "b": "a"}) as (binding, server):
        await binding.call({"a": 1, "b": 2}, CONTEXT)
    assert json.loads(server.seen[0].body) == {"b": 1, "a": 2}


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
async def test_methods_without_a_body_carry_the_input_in_the_query(authority: trustme.CA, method: str) -> None:
    async with facade(authority, answer(200), "/rooms?page=1", method=method) as (binding, server):
        await binding.call({"room_id": "a b&c", "free": True, "nights": 2, "tags": ["x"]}, CONTEXT)
    assert server.seen[0].line.split(" ")[1] == "/rooms?page=1&room_id=a%20b%26c&free=true&nights=2&tags=%5B%22x%22%5D"
    assert server.seen[0].body == b""


async def test_placeholders_in_the_path_take_encoded_values_that_are_not_sent_twice(authority: trustme.CA) -> None:
    async with facade(authority, answer(200), "/rooms/{room_id}/stay") as (binding, server):
        await binding.call({"room_id": "a?b", "guest_id": "g"}, CONTEXT)
    assert server.seen[0].line == "POST /rooms/a%3Fb/stay HTTP/1.1"
    assert json.loads(server.seen[0].body) == {"guest_id": "g"}


@pytest.mark.parametrize(
    "given", [{}, *({"room_id": value} for value in ("", ".", "..", "..%2F..%2Fadmin", "../../admin", "a\\b"))]
)
async def test_value_that_would_change_the_resource_is_refused(authority: trustme.CA, given: dict[str, str]) -> None:
    async with facade(authority, answer(200), "/rooms/{room_id}") as (binding, server):
        refused = await refusal(binding, **given)
    assert (refused.code, refused.details["violations"][0]["pointer"]) == ("input-validation-failed", "/room_id")
    assert server.seen == []


async def test_an_input_too_long_for_a_url_is_refused(authority: trustme.CA) -> None:
    async with facade(authority, answer(200), method="GET") as (binding, server):
        assert (await refusal(binding, room_id="x" * 100_000)).code == "input-validation-failed"
    assert server.seen == []


@rows(
    "code, body, fields",
    (200, b"{}", {}),
    (204, b"", {}),
    (200, b"", {"method": "HEAD"}),
    (404, b"nothing here" * 100, {}),
    (200, b"<html>" * 100, {"answer": "none"}),
)
async def test_connections_are_reused(authority: trustme.CA, code: int, body: bytes, fields: dict[str, Any]) -> None:
    async with facade(authority, answer(code, body), **fields) as (binding, server):
        for _ in range(3):
            await binding.call({}, CONTEXT)
    assert (len(server.seen), server.connections) == (3, 1)


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 404 Gone\r\nContent-Length: 9\r\n\r\nx", b"HTTP/1.1 404 Gone\r\nTransfer-Encoding: chunked\r\n\r\nz"],
)
async def test_a_failure_is_reported_although_its_body_never_ends(authority: trustme.CA, head: bytes) -> None:
    async def stall(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()

    async with facade(authority, stall, error_map={"404": "room_unavailable"}) as (binding, _):
        assert (await refusal(binding)).code == "room_unavailable"


@pytest.mark.requirement("API-12.3-18", "API-12.3-20")
async def test_no_data_about_the_agent_is_sent_upstream(authority: trustme.CA) -> None:
    async with facade(
        authority, answer(200), headers={"Authorization": "Bearer ${TOKEN}"}, environment={"TOKEN": "secret"}
    ) as (binding, server):
        await binding.call({"room_id": "12"}, CONTEXT)
    sent = server.seen[0].headers
    assert sent["authorization"] == "Bearer secret"
    standard = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"}
    assert set(sent) == {*standard, "authorization"}
    assert AGENT not in str(server.seen[0])
    assert "booking:room" not in str(server.seen[0])


async def test_configured_headers_replace_the_standard_ones(authority: trustme.CA) -> None:
    headers = {"Content-Type": "application/vnd.acme+json", "User-Agent": "acme"}
    async with facade(authority, answer(200), headers=headers) as (binding, server):
        await binding.call({}, CONTEXT)
    assert server.seen[0].headers["content-type"] == "application/vnd.acme+json"
    assert server.seen[0].headers["user-agent"] == "acme"


@pytest.mark.requirement("API-12.3-13")
async def test_a_silent_upstream_is_upstream_timeout(authority: trustme.CA) -> None:
    released = asyncio.Event()

    async def hang(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await released.wait()

    async with facade(authority, hang, timeout_seconds=0.2) as (binding, server):
        async with asyncio.timeout(20):  # less than the default of the draft, which would otherwise do as well
            assert (await refusal(binding)).code == "upstream_timeout"
        released.set()
    assert len(server.seen) == 1


async def test_the_deadline_holds_for_an_upstream_that_drips(authority: trustme.CA) -> None:
    """Send each byte in good time; only the total is late."""
    released = asyncio.Event()

    async def drip(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not released.is_set():
            writer.write(b" ")
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(released.wait(), 0.02)

    async with facade(authority, drip, timeout_seconds=0.3) as (binding, _):
        assert (await refusal(binding)).code == "upstream_timeout"
        released.set()


@pytest.mark.requirement("API-12.3-14")
async def test_a_closed_port_is_upstream_connection_error(authority: trustme.CA) -> None:
    async with upstream(authority, answer(200)) as server:
        url, tls = server.url, server.tls
    binding = bound(url, tls)
    refused = await refusal(binding)
    assert (refused.code, refused.headers) == ("upstream_connection_error", (("Retry-After", "5"),))
    assert "127.0.0.1" not in refused.message
    await binding.aclose()


@pytest.mark.requirement("API-12.3-14")
async def test_a_host_without_an_address_is_upstream_connection_error() -> None:
    binding = bound("https://nowhere.invalid/", None)
    assert (await refusal(binding)).code == "upstream_connection_error"
    await binding.aclose()


@pytest.mark.requirement("API-12.3-14")
async def test_a_certificate_of_an_unknown_authority_is_upstream_connection_error(authority: trustme.CA) -> None:
    async with upstream(authority, answer(200)) as server:
        binding = bound(server.url, None)
        assert (await refusal(binding)).code == "upstream_connection_error"
        assert server.seen == []
        await binding.aclose()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"SSH-2.0-hello\r\n\r\n"])
async def test_a_broken_exchange_is_upstream_connection_error(authority: trustme.CA, sent: bytes) -> None:
    async def hang_up(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    async with facade(authority, hang_up) as (binding, _):
        assert (await refusal(binding)).code == "upstream_connection_error"


@pytest.mark.requirement("API-12.3-15")
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"{\xff}", b"[" * 100_000, b"\x1f\x8b\x08\x00"], ids=repr)
async def test_a_success_that_is_not_json_is_upstream_malformed_response(authority: trustme.CA, body: bytes) -> None:
    coding = ("Content-Encoding: gzip",) if body.startswith(b"\x1f") else ()
    async with facade(authority, answer(200, body, *coding)) as (binding, server):
        assert (await refusal(binding)).code == "upstream_malformed_response"
    assert server.seen[0].headers["accept-encoding"] == "identity"


async def test_an_endless_answer_is_cut_off_as_upstream_malformed_response(authority: trustme.CA) -> None:
    written = 0

    async def flood(seen: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        block = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        while True:
            writer.write(block)
            await writer.drain()
            written += 0x10000

    async with facade(authority, flood) as (binding, _):
        assert (await refusal(binding)).code == "upstream_malformed_response"
        # A few megabytes may lie in the buffers between; the rest was never asked for.
        assert written < 3 * MAX_RESPONSE_BYTES


@pytest.mark.requirement("API-12.3-16")
@pytest.mark.parametrize("code", [401, 403])
async def test_rejected_credentials_are_upstream_authentication_failed(authority: trustme.CA, code: int) -> None:
    async with facade(authority, answer(code)) as (binding, _):
        refused = await refusal(binding)
    assert (refused.code, refused.details) == ("upstream_authentication_failed", {"details": {"upstream_status": code}})


@pytest.mark.requirement("API-12.3-17")
@pytest.mark.parametrize("code", [302, 400, 404, 418, 500, 503])
async def test_redirects_and_other_failures_are_upstream_error(authority: trustme.CA, code: int) -> None:
    async with facade(authority, answer(code, b"secret stack trace", "Location: /elsewhere")) as (binding, server):
        refused = await refusal(binding)
    assert (refused.code, len(server.seen)) == ("upstream_error", 1)
    assert "secret" not in str(refused)


@pytest.mark.requirement("API-12.3-19")
@pytest.mark.parametrize("code", [401, 409, 503])
async def test_a_mapped_status_is_the_declared_error(authority: trustme.CA, code: int) -> None:
    async with facade(authority, answer(code), error_map={str(code): "room_unavailable"}) as (binding, _):
        refused = await refusal(binding)
    assert (refused.code, refused.message) == ("room_unavailable", "The room is taken.")
    assert refused.details == {"details": {"upstream_status": code}}
    async with facade(authority, answer(409), error_map={"409": "undescribed"}) as (binding, _):
        assert (await refusal(binding)).message == "The upstream answered 409."


async def test_after_a_failure_the_next_call_succeeds(authority: trustme.CA) -> None:
    async def moody(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if len(server.seen) == 1:
            writer.close()
        else:
            await answer(200, b'{"ok": true}')(seen, writer)

    async with facade(authority, moody) as (binding, server):
        assert (await refusal(binding)).code == "upstream_connection_error"
        assert await binding.call({}, CONTEXT) == {"ok": True}


@pytest.mark.requirement("API-12.3-4")
async def test_unset_variables_and_unusable_headers_refuse_registration_by_name() -> None:
    (finding,) = findings("https://up.example/", headers={"Authorization": "Bearer ${BOOKING_API_TOKEN}"})
    assert "'BOOKING_API_TOKEN'" in finding.message
    assert "'Authorization'" in finding.message
    assert "BOOK /room" in finding.message
    headers = {"A": "${X}", "B": "${Y}", "C C": "1", "D": "${NEWLINE}", "E": "${}"}
    found = findings("https://up.example/", {"NEWLINE": "a\r\nEvil: 1"}, headers=headers)
    assert [finding.pointer.rpartition("/")[2] for finding in found] == ["A", "B", "C C", "D", "E"]


URLS = ("", "https://", "https:///x", "up.example/x", "https://[::1", "https://a:x/", "https://\x00/")
HOSTS = ("https://{room_id}.example/", "https://{room_id}@up.example/", "https://up.example:{room_id}/")


@rows(
    "url, fields, said",
    *((url, {}, "/handler/url: ") for url in URLS),
    *((url, {}, "the host of") for url in HOSTS),
    ("https://up.example/{room_id}/{other}", {}, "'other'"),
    ("https://up.example/", {"input_transform": {"a": "x", "b": "x"}}, "input_transform gives"),
    ("https://up.example/", {"output_transform": {"a": "x", "b": "x"}}, "output_transform gives"),
)
async def test_an_upstream_that_cannot_be_called_refuses_registration(url: str, fields: Any, said: str) -> None:
    (finding,) = findings(url, **fields)
    assert said in f"{finding.pointer}: {finding.message}"


@pytest.mark.requirement("API-12.3-10")
async def test_without_a_timeout_the_upstream_has_thirty_seconds() -> None:
    assert ExternalService(url="https://up.example/", method="POST").timeout_seconds == 30


async def test_upstream_can_be_a_step_of_a_composition(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    async def respond(seen: Seen, writer: asyncio.StreamWriter) -> None:
        body = b'{"confirmation": "C1"}' if b"12" in seen.body else b"{}"
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (200 if b"12" in seen.body else 409, len(body)))
        writer.write(body)

    async with upstream(authority, respond) as here:
        monkeypatch.setattr("bespeak.runtime.bindings.upstream.system_trust", lambda: here.tls)
        handler = ExternalService(url=here.url, method="POST", timeout_seconds=5, error_map={"409": "taken"})
        called = make_endpoint("BOOK", "/room", echo, properties={"room": TEXT}, errors=("taken", *UPSTREAM_ERRORS))
        made = compose("RESERVE", "/room", "r", properties={"id": TEXT})
        steps = recipe(step("BOOK /room", take={"room": given("id")}))
        bench = build(replace(called, handler=handler), made, recipes=(steps,))
        assert bench.findings == []

        async def reserve(room: str) -> Any:
            request = Request("RESERVE", "/room", "", {}, json.dumps({"id": room}).encode(), Connection())
            answer = bench.dispatcher(request)
            return json.loads((await answer if inspect.iscoroutine(answer) else answer).body)

        assert await reserve("12") == {"confirmation": "C1"}
        details = (await reserve("13"))["error"]["details"]
        assert (details["status"], details["code"]) == (422, "taken")
        await bench.server.registrar.close()
