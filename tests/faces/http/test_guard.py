"""What reaches an application beside the HTTP face, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cases import rows

from bespeak.faces.http.asgi import HttpResponse, Message, call_application, send_response
from bespeak.faces.http.face import METADATA, Guard, Origins, replayed
from bespeak.faces.http.site import Page
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio
PAGE = Page(lambda: b"{}", "application/json")
LACKING = Refused(455, "scope-violation", 'It "needs" a scope.', {"missing_scopes": ["b"]})
WRONG = Refused(401, "token-expired", "The token expired.")
NOBODY = Refused(401, "agent-unauthenticated", "Say who you are.")


def guard(**options: Any) -> Guard:
    return Guard(origins=Origins(loopback=True), limits=Limits(body=8), **options)


def scope(method: str = "POST", path: str = "/x", **headers: str) -> dict[str, Any]:
    pairs = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    return {"type": "http", "method": method, "path": path, "headers": pairs}


def sending(*parts: bytes) -> Any:
    left: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    left[-1]["more_body"] = False

    async def receive() -> Message:
        return left.pop(0) if left else {"type": "http.disconnect"}

    return receive


async def test_bodies_are_passed_on_once_read_and_metadata_is_not_written() -> None:
    admitted = await guard().admit(scope(accept="a/b  "), sending(b"1234", b"5678"))
    assert not isinstance(admitted, HttpResponse)
    asked, body = admitted
    assert (b"accept", b"a/b") in asked["headers"]
    assert body == b"12345678"
    receive = replayed(b"first", sending(b"second"))
    assert [(await receive())["body"] for _ in range(2)] == [b"first", b"second"]
    guarding = guard(metadata=PAGE)
    place = f"{METADATA}/x"
    read = await guarding.admit(scope("GET", place), sending(b""))
    written = await guarding.admit(scope("POST", place), sending(b""))
    assert [isinstance(each, HttpResponse) and each.status for each in (read, written)] == [200, 404]

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    assert isinstance(await guard().admit(scope(), leave), HttpResponse)


@rows(
    "asked, parts, number",
    (scope(host="evil.example"), [b"{}"], 421),
    (scope(origin="https://evil.example"), [b"{}"], 403),
    (scope(), [b"1234", b"56789"], 413),
    (scope(path=f"{METADATA}/x", method="GET"), [b""], 404),
)
async def test_a_request_for_something_else_is_refused(asked: dict[str, Any], parts: list[bytes], number: int) -> None:
    found = await guard().admit(asked, sending(*parts))
    assert isinstance(found, HttpResponse)
    assert found.status == number


@pytest.mark.parametrize(("asked", "answered"), [("a", "a"), (7, 7), (True, None), ([], None), (None, None)])
def test_a_refusal_names_the_request_if_its_id_is_valid(asked: Any, answered: Any) -> None:
    reply = guard().refuse(asked, LACKING)
    assert reply.status == 403
    assert msgspec.json.decode(reply.body) == {
        "jsonrpc": "2.0",
        "id": answered,
        "error": {
            "code": -32000,
            "message": 'It "needs" a scope.',
            "data": {"code": "scope-violation", "missing_scopes": ["b"]},
        },
    }
    assert b"www-authenticate" not in dict(reply.headers)


@rows(
    "refused, challenge",
    (LACKING, b'error="insufficient_scope", error_description="It needs a scope.", scope="a b"'),
    (WRONG, b'error="invalid_token", error_description="The token expired.", scope="a b"'),
    (NOBODY, b'scope="a b"'),
)
def test_a_challenge_says_what_is_wrong_and_names_each_scope_once(refused: Refused, challenge: bytes) -> None:
    guarding = guard(realm="x.example", metadata=PAGE, metadata_url="https://x.example/m")
    reply = guarding.refuse(1, refused, ("a", "b", "b"))
    assert dict(reply.headers)[b"www-authenticate"] == b'Bearer resource_metadata="https://x.example/m", ' + challenge


def test_a_challenge_without_metadata_names_the_server() -> None:
    reply = guard(realm="x.example\r\n").refuse(1, NOBODY)
    assert dict(reply.headers)[b"www-authenticate"] == b'Bearer realm="x.example"'


SCOPE = {"type": "http", "method": "POST"}


@pytest.mark.parametrize(("http_method", "body"), [("GET", b"abc"), ("HEAD", b"")])
async def test_a_reply_is_sent_as_two_messages_and_head_without_its_body(http_method: str, body: bytes) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await send_response(HttpResponse(200, [(b"content-length", b"3")], b"abc"), http_method, send)
    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]},
        {"type": "http.response.body", "body": body},
    ]


async def test_an_application_gets_the_whole_body_and_an_answer_without_end_is_given_up() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked = await receive()
        await send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": asked["body"], "more_body": True})
        await send({"type": "http.response.body", "body": b"!"})
        assert await receive() == {"type": "http.disconnect"}

    reply = await call_application(app, dict(SCOPE), b"body")
    assert reply == HttpResponse(201, [(b"a", b"b"), (b"content-length", b"5")], b"body!")

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})

    with pytest.raises(RuntimeError, match="larger than"):
        await call_application(endless, dict(SCOPE), b"")


@pytest.mark.parametrize("number", [204, 304])
async def test_an_answer_that_has_no_body_gets_no_length(number: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send_response(HttpResponse(number, [(b"etag", b'"a"')], b"left out"), "GET", send)

    assert await call_application(app, dict(SCOPE), b"") == HttpResponse(number, [(b"etag", b'"a"')], b"")


async def test_an_application_that_does_not_answer_is_an_error() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})

    async def twice(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            await send_response(HttpResponse(200, [], b"a"), "GET", send)

    for app in (silent, half, twice):
        with pytest.raises(RuntimeError, match="application"):
            await call_application(app, dict(SCOPE), b"")
