"""Retries, deadlines and broken connections, over real sockets."""

from __future__ import annotations

import asyncio

import pytest
from tests.agent.client.scripted import AT_ONCE, Script, Seen, always, hang_up, in_turn, service_of, serving

from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import CallTimeoutError, UnavailableError, UnreachableError
from bespeak.agent.client.sender import EndpointIdempotency, RetryPolicy

pytestmark = pytest.mark.anyio


async def test_an_idempotent_request_is_sent_again_after_a_broken_connection_or_503_and_only_so_often() -> None:
    async with service_of(in_turn(hang_up, hang_up, always(200, {"found": 1}))) as (service, server):
        assert await service.call("QUERY", "/rooms") == {"found": 1}
    assert len(server.seen) >= 3
    async with service_of(in_turn(always(503), always(200, {}))) as (service, server):
        assert await service.call("QUERY", "/rooms") == {}
    assert len(server.seen) == 2
    async with service_of(always(503)) as (service, server):
        with pytest.raises(UnavailableError):
            await service.call("QUERY", "/rooms")
    assert len(server.seen) == 3


@pytest.mark.requirement("API-7.1-7")
@pytest.mark.parametrize("script", [hang_up, always(503)])
async def test_a_request_that_acts_is_never_sent_twice(script: Script) -> None:
    async with service_of(script) as (service, server):
        with pytest.raises((UnreachableError, UnavailableError)):
            await service.call("BOOK", "/room")
    assert len(server.seen) == 1


async def test_a_request_that_acts_is_sent_again_under_its_idempotency_key() -> None:
    busy = always(409, {"error": {"code": "idempotency-key-in-progress"}}, Retry_After="30")
    done = always(200, {"booked": 1}, Idempotency_Replayed="true")
    async with service_of(in_turn(hang_up, busy, done)) as (service, server):
        reply = await service.request("BOOK", "/room", {"room": 1}, idempotency_key="k-1")
    assert (reply.output, reply.replayed) == ({"booked": 1}, True)
    assert [(seen.headers["idempotency-key"], seen.body) for seen in server.seen] == [("k-1", b'{"room":1}')] * 3


@pytest.mark.parametrize("headers", [{"idempotency-key": "k-1"}, {"Idempotency-Key": "k-1"}])
async def test_a_key_among_the_headers_is_a_key_too(headers: dict[str, str]) -> None:
    async with service_of(in_turn(always(503), always(200, {}))) as (service, server):
        assert (await service.request("BOOK", "/room", headers=headers)).ok
    assert len(server.seen) == 2


@pytest.mark.requirement("CORE-6.1-15", "CORE-10.2-3")
@pytest.mark.parametrize("status", [409, 410, 429, 455, 456, 457, 458, 500])
async def test_no_other_refusal_is_retried(status: int) -> None:
    method, options = ("BOOK", {"idempotency_key": "k-1"}) if status == 409 else ("QUERY", {})
    async with service_of(always(status)) as (service, server):
        assert (await service.request(method, "/rooms", **options)).status == status
    assert len(server.seen) == 1


async def test_a_silent_server_is_a_typed_timeout_and_the_deadline_holds_for_all_attempts() -> None:
    released = asyncio.Event()

    async def hang(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await released.wait()

    async with service_of(in_turn(hang, always(200, {"answer": 2})), timeout=0.3) as (service, server):
        with pytest.raises(CallTimeoutError, match="BOOK /room"):
            await service.request("BOOK", "/room")
        assert (await service.request("BOOK", "/room")).json() == {"answer": 2}
        released.set()
    assert server.connections == 2
    async with service_of(
        always(503), timeout=0.2, retry=RetryPolicy(attempts=10**9, first_delay=0, longest_delay=0)
    ) as (service, server):
        with pytest.raises(CallTimeoutError, match="QUERY /rooms"):
            await service.request("QUERY", "/rooms")
    assert len(server.seen) > 1


async def test_closed_ports_and_other_protocols_are_typed_errors() -> None:
    async with serving(always(200)) as server:
        pass
    async with connect(server.uri, retry=AT_ONCE) as service:
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{server.port}"):
            await service.call("QUERY", "/rooms")

    def speak_http(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with service_of(speak_http) as (service, _):
        with pytest.raises(UnreachableError, match="an HTTP response: use http:// for this port"):
            await service.call("BOOK", "/room")


@pytest.mark.requirement("API-7.1-7")
def test_only_asking_methods_are_repeated_after_growing_delays() -> None:
    for method in ("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"):
        assert EndpointIdempotency().may_repeat(method, "/anything"), method
    for method in ("BOOK", "EXECUTE", "PROPOSE", "NOTIFY", "DELEGATE"):
        assert not EndpointIdempotency().may_repeat(method, "/"), method
    policy = RetryPolicy(first_delay=1, longest_delay=3)
    for failures, bound in ((1, 1), (2, 2), (3, 3), (60, 3)):
        assert all(0 <= policy.delay(failures) <= bound for _ in range(50))
    assert len({policy.delay(3) for _ in range(20)}) > 1


def test_the_manifest_says_what_may_be_repeated_and_the_cautious_template_counts() -> None:
    known = EndpointIdempotency([("CANCEL", "/room", True), ("QUERY", "/counter", False)])
    assert known.may_repeat("CANCEL", "/room")
    assert not known.may_repeat("CANCEL", "/other")
    assert not known.may_repeat("QUERY", "/counter")
    assert known.may_repeat("QUERY", "/other")
    known = EndpointIdempotency(
        [("CANCEL", "/rooms/{id}", True), ("CANCEL", "/rooms/{id}/stay", False), ("CANCEL", "{bad", True)]
    )
    assert known.may_repeat("CANCEL", "/rooms/12")
    assert not known.may_repeat("CANCEL", "/rooms/12/stay")
    assert not known.may_repeat("CANCEL", "/halls/12")
    known = EndpointIdempotency([("CANCEL", "/{kind}/{id}", True), ("CANCEL", "/rooms/{id}", False)])
    assert not known.may_repeat("CANCEL", "/rooms/12")
    assert known.may_repeat("CANCEL", "/halls/12")
