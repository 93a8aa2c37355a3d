"""What reaches an application beside the HTTP face, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.http.face import Origins
from bespeak.faces.http.guard import METADATA, Guard, replayed
from bespeak.faces.http.site import Page
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio

PAGE = Page(lambda: b"{}", "application/json")
LACKING = Refused(455, "scope-violation", 'It "needs" a scope.', {"missing_scopes": ["b"]})


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


async def test_a_request_is_passed_on_with_its_body_and_without_blanks() -> None:
    admitted = await guard().admit(scope(accept="a/b  "), sending(b"1234", b"5678"))
    assert not isinstance(admitted, HttpResponse)
    asked, body = admitted
    assert (b"accept", b"a/b") in asked["headers"]
    assert body == b"12345678"


@pytest.mark.parametrize(
    ("asked", "parts", "number"),
    [
        (scope(host="evil.example"), [b"{}"], 421),
        (scope(origin="https://evil.example"), [b"{}"], 403),
        (scope(), [b"1234", b"56789"], 413),
        (scope(path=f"{METADATA}/x", method="GET"), [b""], 404),
    ],
)
async def test_a_request_that_is_not_for_the_application_is_refused(
    asked: dict[str, Any], parts: list[bytes], number: int
) -> None:
    found = await guard().admit(asked, sending(*parts))
    assert isinstance(found, HttpResponse)
    assert found.status == number


async def test_a_body_whose_sender_leaves_is_not_passed_on() -> None:
    async def leave() -> Message:
        return {"type": "http.disconnect"}

    assert isinstance(await guard().admit(scope(), leave), HttpResponse)


async def test_metadata_is_read_and_not_written() -> None:
    guarding = guard(metadata=PAGE)
    place = f"{METADATA}/x"
    read = await guarding.admit(scope("GET", place), sending(b""))
    written = await guarding.admit(scope("POST", place), sending(b""))
    assert [isinstance(each, HttpResponse) and each.status for each in (read, written)] == [200, 404]


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


WRONG = Refused(401, "token-expired", "The token expired.")
NOBODY = Refused(401, "agent-unauthenticated", "Say who you are.")


@pytest.mark.parametrize(
    ("refused", "challenge"),
    [
        (LACKING, b'error="insufficient_scope", error_description="It needs a scope.", scope="a b"'),
        (WRONG, b'error="invalid_token", error_description="The token expired.", scope="a b"'),
        (NOBODY, b'scope="a b"'),
    ],
)
def test_a_challenge_says_what_is_wrong_and_names_each_scope_once(refused: Refused, challenge: bytes) -> None:
    guarding = guard(realm="x.example", metadata=PAGE, metadata_url="https://x.example/m")
    reply = guarding.refuse(1, refused, ("a", "b", "b"))
    assert dict(reply.headers)[b"www-authenticate"] == b'Bearer resource_metadata="https://x.example/m", ' + challenge


def test_a_challenge_without_metadata_names_the_server() -> None:
    reply = guard(realm="x.example\r\n").refuse(1, NOBODY)
    assert dict(reply.headers)[b"www-authenticate"] == b'Bearer realm="x.example"'


async def test_a_body_that_was_read_is_received_again_and_then_the_rest() -> None:
    receive = replayed(b"first", sending(b"second"))
    assert [(await receive())["body"] for _ in range(2)] == [b"first", b"second"]
