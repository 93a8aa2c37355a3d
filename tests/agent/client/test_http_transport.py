"""The same conversation over AGTP and over its HTTP face."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OKPKey
from tests.agent.client.faces import FACES, NOTHING_KEPT, Face, served, talking
from tests.agent.discovery.web import (
    HOST,
    AnyPort,
    Asked,
    Script,
    Time,
    always,
    client_tls,
    redirect,
    resolve,
    send,
    serving,
)
from tests.service import AGENT

from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import (
    AuthorityMissingError,
    BusinessError,
    EndpointViolationError,
    InvalidInputError,
    MethodNotAllowedError,
    MethodViolationError,
    NotFoundError,
    ServiceError,
    UnauthorizedError,
    UnreachableError,
)
from bespeak.agent.client.http_transport import FaceExchanger, HttpExchanger, Pace
from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bespeak.protocol.address_guard import AddressGuard, Origin, PinnedTransport
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.state.identity.settings import AuthSettings, SignedSettings, TokenSettings

pytestmark = pytest.mark.anyio


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.param
    return found


async def test_an_endpoint_is_called(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, _):
        assert await service.call("BOOK", "/room", room_id="12", guests=2) == {
            "reservation": 1,
            "room_id": "12",
            "guests": 2,
        }


async def test_a_path_and_a_query_are_passed_on(face: Face) -> None:
    async with talking(face) as (service, _):
        reply = await service.request("FIND", "/rooms/a%20b%2Fc", query={"guests": 3})
    assert reply.output == {"room_id": "a b/c", "guests": 3}


async def test_the_manifest_is_the_same(face: Face) -> None:
    async with talking(face) as (service, _):
        manifest = await service.discover()
        again = await service.discover(refresh=True)
        inventory = await service.methods()
    assert manifest.endpoint("BOOK", "/room") is not None
    assert manifest.server.server_id == "test.example"
    assert again is manifest
    assert ("BOOK", "/room") in [(entry.method, entry.path) for entry in inventory]
    assert service.catalog_version is not None


@pytest.mark.parametrize(
    ("call", "kind", "status", "code"),
    [
        (("BOOK", "/room", {"room_id": "taken"}), BusinessError, 422, "room_unavailable"),
        (("BOOK", "/room", {"room_id": 7}), InvalidInputError, 422, "input-validation-failed"),
        (("BOOK", "/nothing", {}), NotFoundError, 404, "endpoint-not-found"),
        (("BOOK", "/rooms/1", {}), MethodNotAllowedError, 405, "method-not-allowed"),
        (("BOKO", "/room", {}), MethodViolationError, 459, "method-violation"),
        (("BOOK", "/book", {}), EndpointViolationError, 460, "endpoint-violation"),
        (("CANCEL", "/room", {}), AuthorityMissingError, 455, "scope-violation"),
    ],
)
async def test_every_refusal_is_the_error_it_is_on_agtp(
    face: Face, call: tuple[str, str, dict[str, Any]], kind: type[ServiceError], status: int, code: str
) -> None:
    method, path, given = call
    async with talking(face, agent_id=AGENT, scopes=["room:look"]) as (service, _):
        with pytest.raises(kind) as caught:
            await service.call(method, path, **given)
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.code) == (status, code)
    assert caught.value.message


async def test_refusal_is_the_same_on_both_transports() -> None:
    told = []
    for face in FACES:
        async with talking(face, agent_id=AGENT) as (service, _):
            replies = [
                await service.request("BOOK", "/room", {"room_id": "taken"}),
                await service.request("BOOK", "/room", {"guests": "many"}),
                await service.request("CANCEL", "/room", {}),
                await service.request("BOKO", "/room"),
                await service.request("BOOK", "/room", {"room_id": "1"}, headers={"Agent-ID": "nobody"}),
            ]
        told.append([(reply.status, reply.reason, reply.error) for reply in replies])
    assert told[0] == told[1]


async def test_a_missing_credential_says_which_condition_it_is(face: Face) -> None:
    async with talking(face) as (service, _):
        with pytest.raises(AuthorityMissingError) as caught:
            await service.call("CANCEL", "/room")
    assert (caught.value.status, caught.value.condition) == (262, "credentials-missing")


async def test_violations_and_details_arrive_whole(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, _):
        with pytest.raises(InvalidInputError) as invalid:
            await service.call("BOOK", "/room", guests="x")
        with pytest.raises(BusinessError) as business:
            await service.call("BOOK", "/room", room_id="taken")
    assert len(invalid.value.violations) == 2
    assert business.value.details == {"next_free": "2027-01-01"}


async def test_a_key_makes_a_call_happen_once(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, place):
        first = await service.request("BOOK", "/room", {"room_id": "1"}, idempotency_key="k-1", task_id="t-7")
        second = await service.request("BOOK", "/room", {"room_id": "1"}, idempotency_key="k-1", task_id="t-7")
    assert (first.replayed, second.replayed, place.rooms.booked) == (False, True, 1)
    assert second.output == first.output
    assert first.headers["task-id"] == "t-7"


async def test_an_advisory_arrives(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, _):
        reply = await service.request("RESERVE", "/room", {})
    assert [(warning.about, warning.kind) for warning in reply.warnings] == [("endpoint", "deprecated")]


async def test_bearer_token_authenticates_the_caller(face: Face, tmp_path: Path) -> None:
    key = OKPKey.generate_key("Ed25519")
    (tmp_path / "keys.pem").write_bytes(key.as_pem(private=False))
    auth = AuthSettings(modes=("token",), token=TokenSettings(keys=tmp_path / "keys.pem"))
    claims = {"agent_id": AGENT, "scope": "room:cancel", "aud": "test.example", "exp": time.time() + 60}
    token = jwt.encode({"alg": "Ed25519"}, claims, key, algorithms=["Ed25519"])
    server = {"document": ServerDocument(auth=auth)}
    async with talking(face, server, token=token) as (service, _):
        assert await service.call("CANCEL", "/room", room_id="1") == {"room_id": "1"}
    async with talking(face, server, agent_id=AGENT, scopes=["room:cancel"]) as (service, _):
        with pytest.raises(UnauthorizedError):
            await service.call("CANCEL", "/room", room_id="1")


async def test_signature_authenticates_the_caller(face: Face, tmp_path: Path) -> None:
    key = OKPKey.generate_key("Ed25519")
    (tmp_path / "agent.pem").write_bytes(key.as_pem(private=True))
    agents = (Agent(agent_id=AGENT, name="desk", public_key=key.as_dict(private=False)),)
    auth = AuthSettings(modes=("signed",), signed=SignedSettings())
    server = {"document": ServerDocument(auth=auth), "agents": agents}
    options = {"agent_id": AGENT, "agent_key": tmp_path / "agent.pem", "server_id": "test.example"}
    async with talking(face, server, **options) as (service, _):
        answer = await service.request("FIND", "/rooms/a%20b", query={"guests": 2}, task_id="t")
        assert answer.output == {"room_id": "a b", "guests": 2}
        booked = await service.request("BOOK", "/room", {"room_id": "1"}, idempotency_key="k")
    assert booked.ok, booked.error


async def test_an_endpoint_is_called_by_the_name_that_the_discovery_document_gives_it() -> None:
    async with talking("http", agent_id=AGENT) as (service, _):
        assert service.discovered is not None
        found = next(each.id for each in service.discovered.capabilities if each.target.endswith(":find"))
        assert await service.call("book_room", room_id="1") == {"reservation": 1, "room_id": "1"}
        assert await service.call(found, room_id="a/b") == {"room_id": "a/b"}
        with pytest.raises(ConfigError, match="needs a value for 'room_id'"):
            await service.call(found)
        with pytest.raises(ConfigError, match=r"Its capabilities are .*book_room"):
            await service.call("book_boat")


async def test_agtp_itself_has_no_names() -> None:
    async with talking("agtp") as (service, _):
        with pytest.raises(ConfigError, match="use a method and a path"):
            await service.call("book_room")


async def test_many_calls_at_once_get_their_own_answers(face: Face) -> None:
    async with talking(face, pool_size=3) as (service, _):
        answers = await asyncio.gather(*(service.call("FIND", f"/rooms/{number}") for number in range(40)))
    assert [answer["room_id"] for answer in answers] == [str(number) for number in range(40)]


def exchanger(**options: Any) -> HttpExchanger:
    return HttpExchanger(
        PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=resolve), client_tls(), keep=2), **options
    )


async def ask(script: Script, method: str = "POST", **options: Any) -> tuple[ResponseMessage, list[Asked]]:
    http = exchanger(**options)
    async with serving(script) as web:
        try:
            message = await http.request(method, f"{web.url}/x", [("X-One", "1")], b"{}")
        finally:
            await http.close()
    return message, web.asked


async def test_response_without_agtp_status_keeps_its_http_status() -> None:
    http = exchanger()
    async with serving(always(502, b"<html>", Content_Type="text/html")) as web:
        message = await FaceExchanger(http, Origin("https", HOST, web.port)).request("BOOK", "/room")
        await http.close()
    assert (message.status, message.body) == (502, b"<html>")


@pytest.mark.parametrize("said", ["999", "abc", "20", "200200", "-10"])
async def test_a_number_that_agtp_does_not_have_is_not_believed(said: str) -> None:
    http = exchanger()
    async with serving(always(500, AGTP_Status=said)) as web:
        message = await FaceExchanger(http, Origin("https", HOST, web.port)).request("BOOK", "/room")
        await http.close()
    assert message.status == 500


async def test_method_is_sent_in_a_header_for_agis_only_services() -> None:
    http = exchanger()
    async with serving(always(200, {})) as web:
        face = FaceExchanger(http, Origin("https", HOST, web.port), "/api", by_header=True)
        await face.request("BOOK", "/room?a=1")
        await FaceExchanger(http, Origin("https", HOST, web.port), "/api").request("BOOK", "/room?a=1")
        await http.close()
    first, second = web.asked
    assert (first.method, first.target, first.headers["x-agis-method"]) == ("POST", "/api/room?a=1", "BOOK")
    assert (second.method, second.target) == ("POST", "/api/room:book?a=1")
    assert "x-agis-method" not in second.headers


async def test_a_request_is_sent_to_the_name_and_not_to_the_number() -> None:
    _, [asked] = await ask(always(200, {}))
    assert asked.headers["host"].startswith(f"{HOST}:")
    assert (asked.method, asked.body, asked.headers["x-one"]) == ("POST", b"{}", "1")


async def test_only_reading_follows_a_redirect_and_only_at_the_same_host() -> None:
    def script(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return (redirect("/y") if asked.target == "/x" else always(200, {}))(asked, writer)

    message, asked = await ask(script, "GET")
    assert (message.status, [each.target for each in asked]) == (200, ["/x", "/y"])
    message, _ = await ask(script, "POST")
    assert message.status == 302
    message, _ = await ask(redirect("https://other.test/y"), "GET")
    assert message.status == 302
    message, asked = await ask(redirect("/x"), "GET")
    assert (message.status, len(asked)) == (302, 6)


async def test_an_answer_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(RemoteProtocolError, match="more than 100"):
        await ask(always(200, b"x" * 200, Content_Type="text/plain"), most=100)


async def test_a_broken_connection_is_tried_again_where_that_does_no_harm() -> None:
    calls = []

    def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        calls.append(asked)
        if len(calls) == 1:
            writer.close()
        else:
            send(writer, 200, {})

    http = exchanger()
    async with serving(script) as web:
        message = await http.request("GET", f"{web.url}/x", retry=True)
        assert message.status == 200
        calls.clear()
        with pytest.raises((RemoteProtocolError, ConnectionResetError)):
            await http.request("GET", f"{web.url}/x")
        await http.close()


@pytest.mark.parametrize("target", ["/a b", "/ä"])
async def test_invalid_target_is_reported_before_sending(target: str) -> None:
    http = exchanger()
    async with serving(always(200)) as web:
        with pytest.raises(LocalProtocolError):
            await FaceExchanger(http, Origin("https", HOST, web.port)).request("BOOK", target)
        await http.close()
    assert web.asked == []


async def test_invalid_header_is_reported_before_sending() -> None:
    http = exchanger()
    async with serving(always(200)) as web:
        with pytest.raises(LocalProtocolError):
            await http.request("GET", f"{web.url}/x", [("X-One", "a\r\nX-Two: b")])
        await http.close()
    assert web.asked == []


async def test_refused_connection_is_reported_as_for_agtp() -> None:
    async with served() as place:
        pass
    with pytest.raises(UnreachableError):
        async with connect(place.uris["http"], web=NOTHING_KEPT):
            pass


def pace(per_minute: int) -> tuple[Pace, Time]:
    moment = Time()
    return Pace(per_minute, clock=moment, sleep=moment.sleep), moment


async def test_turns_are_given_at_once_until_the_minute_is_full() -> None:
    turns, moment = pace(3)
    assert [await turns.turn(100) for _ in range(3)] == [0, 0, 0]
    assert moment.slept == []


async def test_the_next_turn_is_a_minute_after_the_first_of_the_last_ones() -> None:
    turns, moment = pace(2)
    for pause in (0, 20, 5):
        moment.now += pause
        await turns.turn(100)
    assert moment.slept == [35.0]
    await turns.turn(100)
    assert moment.slept == [35.0, 20.0]


async def test_a_turn_that_is_too_far_away_is_not_taken() -> None:
    turns, moment = pace(1)
    await turns.turn(0)
    moment.now += 10
    assert [await turns.turn(30), await turns.turn(30)] == [50.0, 50.0]
    moment.now += 30
    assert await turns.turn(30) == 0
    assert moment.slept == [20.0]


async def test_concurrent_calls_get_different_turns() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    turns = Pace(2, clock=lambda: 0.0, sleep=sleep)
    await asyncio.gather(*(turns.turn(1000) for _ in range(6)))
    assert slept == [60.0, 60.0, 120.0, 120.0]


@pytest.mark.requirement("AI-3.6-2")
@given(st.integers(1, 5), st.lists(st.floats(0, 90), max_size=30))
def test_no_minute_has_more(per_minute: int, pauses: list[float]) -> None:
    turns, moment = pace(per_minute)
    given: list[float] = []

    async def take() -> None:
        for pause in pauses:
            moment.now += pause
            assert await turns.turn(1000) == 0
            given.append(moment.now)

    asyncio.run(take())
    for first, later in zip(given, given[per_minute:], strict=False):
        assert later - first >= 60 - 1e-6
