"""Answers in the words of ASGI."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.faces.http.asgi import HttpResponse, call_application, send_response

pytestmark = pytest.mark.anyio


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


SCOPE = {"type": "http", "method": "POST"}


async def test_an_application_gets_the_whole_body_and_its_parts_are_one_answer() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked = await receive()
        await send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": asked["body"], "more_body": True})
        await send({"type": "http.response.body", "body": b"!"})
        assert await receive() == {"type": "http.disconnect"}

    reply = await call_application(app, dict(SCOPE), b"body")
    assert reply == HttpResponse(201, [(b"a", b"b"), (b"content-length", b"5")], b"body!")


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


async def test_an_answer_without_end_is_given_up() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})

    with pytest.raises(RuntimeError, match="larger than"):
        await call_application(endless, dict(SCOPE), b"")
