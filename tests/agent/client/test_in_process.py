"""The same conversation as over a socket, without one."""

from __future__ import annotations

import pytest

from bespeak.agent.client.agtp_transport import InProcess, Pool
from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio


async def test_a_handler_answers_as_over_a_socket(serve, handler) -> None:
    _, port = await serve()
    pool, direct = Pool("127.0.0.1", port), InProcess(handler)
    for target in ("/a?b=c", "/turn", "/big?10"):
        asked = ("QUERY", target, [("Task-ID", "t")], b"{}")
        assert await direct.request(*asked) == await pool.request(*asked)
    over_socket, in_process = handler.requests[:2]
    assert (over_socket.path, over_socket.headers) == (in_process.path, in_process.headers)
    await pool.close()


async def test_a_body_beyond_the_limits_is_malformed(handler) -> None:
    response = await InProcess(handler, limits=Limits(body=2)).request("QUERY", "/a", body=b"123")
    assert (response.status, response.body) == (413, b"content-too-large")


async def test_unencodable_request_is_refused(handler) -> None:
    with pytest.raises(LocalProtocolError):
        await InProcess(handler).request("QUERY", "/a#b")


async def test_headers_of_block_and_answer_arrive_together() -> None:
    class Fixed:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("Server-ID", "s")), (("Task-ID", "t"),))

    response = await InProcess(Fixed()).request("QUERY", "/")
    assert response.headers == {"server-id": "s", "task-id": "t", "content-length": "0"}


async def test_a_block_that_breaks_the_head_is_noticed() -> None:
    class Broken:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("No Name", "s")))

    with pytest.raises(RemoteProtocolError):
        await InProcess(Broken()).request("QUERY", "/")
