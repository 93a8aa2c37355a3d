"""Answers in the words of ASGI."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.faces.http.asgi import Reply, send_reply


@pytest.mark.anyio
@pytest.mark.parametrize(("http_method", "body"), [("GET", b"abc"), ("HEAD", b"")])
async def test_a_reply_is_sent_as_two_messages_and_head_without_its_body(http_method: str, body: bytes) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await send_reply(Reply(200, [(b"content-length", b"3")], b"abc"), http_method, send)
    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]},
        {"type": "http.response.body", "body": body},
    ]
