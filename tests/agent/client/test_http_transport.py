"""The same conversation over AGTP and over its HTTP face."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

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
from tests.cases import rows
from tests.service import AGENT

from bespeak.agent.client import errors
from bespeak.agent.client.connect import connect
from bespeak.agent.client.http_transport import (
    CapabilityRequest,
    FaceExchanger,
    HttpExchanger,
    RequestPace,
    agtp_status,
    build_request,
    error_body,
)
from bespeak.agent.discovery.readers import Capability, Placement
from bespeak.contract.agent import Agent
from bespeak.contract.http_route import leaves_segment
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bespeak.faces.http.translation import problem
from bespeak.protocol.address_guard import AddressGuard, Origin, PinnedTransport
from bespeak.protocol.status import to_http
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.state.identity.settings import AuthSettings, SignedSettings, TokenSettings

pytestmark = pytest.mark.anyio
HERE = Origin("https", "a.example", 443)
PROBLEM = {"content-type": "application/problem+json; charset=utf-8"}


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.param
    return found


async def test_an_endpoint_is_called_with_its_path_and_query(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, _):
        expected = {"reservation": 1, "room_id": "12", "guests": 2}
        assert await service.call("BOOK", "/room", room_id="12", guests=2) == expected
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


@rows(
    "call, kind, status, code",
    (("BOOK", "/room", {"room_id": "taken"}), errors.BusinessError, 422, "room_unavailable"),
    (("BOOK", "/room", {"room_id": 7}), errors.InvalidInputError, 422, "input-validation-failed"),
    (("BOOK", "/nothing", {}), errors.NotFoundError, 404, "endpoint-not-found"),
    (("BOOK", "/rooms/1", {}), errors.MethodNotAllowedError, 405, "method-not-allowed"),
    (("BOKO", "/room", {}), errors.MethodViolationError, 459, "method-violation"),
    (("BOOK", "/book", {}), errors.EndpointViolationError, 460, "endpoint-violation"),
    (("CANCEL", "/room", {}), errors.AuthorityMissingError, 455, "scope-violation"),
)
async def test_every_refusal_is_the_error_it_is_on_agtp(
    face: Face, call: tuple[str, str, dict[str, Any]], kind: type[errors.ServiceError], status: int, code: str
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


async def test_refusals_violations_and_conditions_arrive_whole(face: Face) -> None:
    async with talking(face) as (service, _):
        with pytest.raises(errors.AuthorityMissingError) as caught:
            await service.call("CANCEL", "/room")
    assert (caught.value.status, caught.value.condition) == (262, "credentials-missing")
    async with talking(face, agent_id=AGENT) as (service, _):
        with pytest.raises(errors.InvalidInputError) as invalid:
            await service.call("BOOK", "/room", guests="x")
        with pytest.raises(errors.BusinessError) as business:
            await service.call("BOOK", "/room", room_id="taken")
        reply = await service.request("RESERVE", "/room", {})
    assert len(invalid.value.violations) == 2
    assert business.value.details == {"next_free": "2027-01-01"}
    assert [(warning.about, warning.kind) for warning in reply.warnings] == [("endpoint", "deprecated")]


async def test_a_key_makes_a_call_happen_once(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (service, place):
        first = await service.request("BOOK", "/room", {"room_id": "1"}, idempotency_key="k-1", task_id="t-7")
        second = await service.request("BOOK", "/room", {"room_id": "1"}, idempotency_key="k-1", task_id="t-7")
    assert (first.replayed, second.replayed, place.rooms.booked) == (False, True, 1)
    assert second.output == first.output
    assert first.headers["task-id"] == "t-7"


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
        with pytest.raises(errors.UnauthorizedError):
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


async def test_an_endpoint_is_called_by_the_name_of_the_discovery_document_which_agtp_has_not() -> None:
    async with talking("http", agent_id=AGENT) as (service, _):
        found = next(each.id for each in service.discovered.capabilities if each.target.endswith(":find"))
        assert await service.call("book_room", room_id="1") == {"reservation": 1, "room_id": "1"}
        assert await service.call(found, room_id="a/b") == {"room_id": "a/b"}
        with pytest.raises(ConfigError, match="needs a value for 'room_id'"):
            await service.call(found)
        with pytest.raises(ConfigError, match=r"Its capabilities are .*book_room"):
            await service.call("book_boat")
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


@pytest.mark.parametrize("said", [None, "999", "abc", "20", "200200", "-10"])
async def test_response_without_a_status_of_agtp_keeps_its_http_status(said: str | None) -> None:
    http, stated = exchanger(), {} if said is None else {"AGTP_Status": said}
    async with serving(always(502, b"<html>", Content_Type="text/html", **stated)) as web:
        message = await FaceExchanger(http, Origin("https", HOST, web.port)).request("BOOK", "/room")
        await http.close()
    assert (message.status, message.body) == (502, b"<html>")


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


async def test_requests_go_to_the_name_and_invalid_ones_are_not_sent() -> None:
    _, [asked] = await ask(always(200, {}))
    assert asked.headers["host"].startswith(f"{HOST}:")
    assert (asked.method, asked.body, asked.headers["x-one"]) == ("POST", b"{}", "1")
    http = exchanger()
    async with serving(always(200)) as web:
        with pytest.raises(LocalProtocolError):
            await http.request("GET", f"{web.url}/x", [("X-One", "a\r\nX-Two: b")])
        await http.close()
    assert web.asked == []
    with pytest.raises(RemoteProtocolError, match="more than 100"):
        await ask(always(200, b"x" * 200, Content_Type="text/plain"), most=100)
    async with served() as place:
        pass
    with pytest.raises(errors.UnreachableError):
        async with connect(place.uris["http"], web=NOTHING_KEPT):
            pass


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
        assert (await http.request("GET", f"{web.url}/x", retry=True)).status == 200
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


def pace(per_minute: int) -> tuple[RequestPace, Time]:
    moment = Time()
    return RequestPace(per_minute, clock=moment, sleep=moment.sleep), moment


async def test_turns_are_a_minute_apart_and_not_taken_if_too_far_away() -> None:
    turns, moment = pace(3)
    assert [await turns.turn(100) for _ in range(3)] == [0, 0, 0]
    assert moment.slept == []
    turns, moment = pace(2)
    for pause in (0, 20, 5):
        moment.now += pause
        await turns.turn(100)
    assert moment.slept == [35.0]
    await turns.turn(100)
    assert moment.slept == [35.0, 20.0]
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

    turns = RequestPace(2, clock=lambda: 0.0, sleep=sleep)
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


def capability(method: str = "GET", target: str = "/x", **fields: Any) -> Capability:
    return Capability(id="x", method=method, path=target, origin=HERE, target=target, **fields)


def build(given: dict[str, Any], method: str = "GET", target: str = "/x", **fields: Any) -> CapabilityRequest:
    built = build_request(capability(method, target, **fields), given)
    assert isinstance(built, CapabilityRequest), built
    return built


def refused(given: dict[str, Any], **fields: Any) -> list[str]:
    found = build_request(capability(**fields), given)
    assert isinstance(found, list), found
    return [fault.pointer for fault in found]


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
def test_method_without_body_uses_the_query(method: str) -> None:
    built = build({"a": "x y&z", "n": 2, "b": True, "l": ["p", 1], "o": {"k": 1}, "nothing": None}, method)
    assert built.address.target == "/x?a=x%20y%26z&n=2&b=true&l=p&l=1&o=%7B%22k%22%3A1%7D"
    assert (built.body, built.headers) == (b"", {})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_method_with_body_uses_the_body(method: str) -> None:
    built = build({"a": [1], "id": "7"}, method, "/x/{id}")
    assert (built.address.target, json.loads(built.body)) == ("/x/7", {"a": [1]})
    assert built.headers == {"Content-Type": "application/json"}


def test_values_are_encoded_required_and_sent_as_the_media_type_says() -> None:
    assert build({"b": 2}, target="/x?a=1").address.target == "/x?a=1&b=2"
    assert build({"id": "a?b#c"}, target="/x/{id}").address.target == "/x/a%3Fb%23c"
    assert refused({}, target="/x/{id}") == [""]
    built = build({"a": "x y", "l": [1, 2]}, "POST", media_type="application/x-www-form-urlencoded")
    assert built.body == b"a=x%20y&l=1&l=2"
    found = build_request(capability("POST", media_type="multipart/form-data"), {"a": 1})
    assert isinstance(found, list)
    assert "multipart/form-data" in found[0].message


@pytest.mark.parametrize("value", ["", ".", "..", "../a", "..%2Fa"])
def test_a_value_must_not_choose_another_path(value: str) -> None:
    assert refused({"id": value}, target="/x/{id}/y") == ["/id"]


def test_members_go_where_they_are_placed() -> None:
    placements = {
        "trace": Placement("header", "X-Trace"),
        "sid": Placement("cookie", "sid"),
        "tags": Placement("query", "tags", "pipe"),
        "filter": Placement("query", "filter", "json"),
        "doc": Placement("whole-body", "doc"),
    }
    given = {"trace": "t", "sid": "s", "tags": ["a", "b"], "filter": [1], "doc": [1, 2]}
    built = build(given, "POST", placements=placements)
    assert built.address.target == "/x?tags=a%7Cb&filter=%5B1%5D"
    assert built.headers == {"X-Trace": "t", "Cookie": "sid=s", "Content-Type": "application/json"}
    assert built.body == b"[1,2]"


@pytest.mark.parametrize("value", ["a\r\nX: y", "日", "a\0b"])
def test_a_value_adds_no_header(value: str) -> None:
    assert refused({"v": value}, placements={"v": Placement("header", "V")}) == ["/v"]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a; b=c"])
def test_a_value_adds_no_cookie(value: str) -> None:
    [cookie] = build({"v": value}, placements={"v": Placement("cookie", "V")}).headers.values()
    assert set(cookie).isdisjoint(" ;\r\n")


@pytest.mark.parametrize(("place", "name"), [("header", "Host"), ("header", "a b"), ("header", ""), ("cookie", "a=b")])
def test_a_document_must_not_choose_where_a_message_goes_or_ends(place: Any, name: str) -> None:
    assert refused({"v": "x"}, placements={"v": Placement(place, name)}) == ["/v"]


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=4), st.text(min_size=1, max_size=12))
def test_every_text_arrives_as_it_was(query: dict[str, str], value: str) -> None:
    query.pop("id", None)
    try:
        built = build_request(capability(target="/x/{id}"), {**query, "id": value})
    except UnicodeEncodeError:
        return
    if isinstance(built, list):
        assert leaves_segment(value)
        return
    path, _, text = built.address.target.partition("?")
    assert unquote(path.removeprefix("/x/")) == value
    assert dict(parse_qsl(text, keep_blank_values=True)) == query


def turned(body: Any, status: int = 422) -> Any:
    return json.loads(error_body(status, PROBLEM, json.dumps(body).encode()))


@rows(
    "error",
    {"code": "method-violation", "message": "No.", "suggestions": ["BOOK"]},
    {"code": "authorization-required", "message": "No.", "type": "scope-required", "title": "x", "status": 7},
    {"code": "x", "message": "", "details": {"a": [1]}, "detail": "y"},
)
def test_problem_of_the_face_becomes_the_original_error(error: dict[str, Any]) -> None:
    whole = {"error": error, "task_id": "t-1"}
    number, body = problem(459, json.dumps(whole).encode())
    assert json.loads(error_body(number, PROBLEM, body)) == whole


def test_foreign_problem_is_named_by_its_type() -> None:
    told = {"type": "https://api.example/problems/out-of-credit", "title": "Out of credit", "balance": 3}
    assert turned(told) == {"error": {"code": "out-of-credit", "message": "Out of credit", "balance": 3}}
    assert turned({"title": "x"})["error"]["code"] == "unprocessable-entity"
    assert turned({}, 418)["error"] == {"code": "status-418", "message": ""}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_other_bodies_are_unchanged(body: bytes) -> None:
    assert error_body(500, PROBLEM, body) == body
    assert error_body(500, {"content-type": "text/html"}, b"{}") == b"{}"


@pytest.mark.parametrize("number", [200, 262, 405, 455, 459, 503])
def test_the_number_is_the_one_that_agtp_has(number: int) -> None:
    assert agtp_status(to_http(number), {"agtp-status": str(number)}) == number


@given(st.text(max_size=5))
def test_no_other_text_is_believed(text: str) -> None:
    assert agtp_status(500, {"agtp-status": text}) == 500 or text.isdigit()


@given(
    st.dictionaries(
        st.sampled_from(["type", "title", "status", "detail", "code", "x"]), st.none() | st.text() | st.integers()
    )
)
def test_no_problem_raises(told: dict[str, Any]) -> None:
    assert isinstance(turned(told)["error"]["code"], str)
