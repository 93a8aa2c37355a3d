"""A webhook gets a posting once it is safe to connect to it, and what it answers decides what follows."""

from __future__ import annotations

import asyncio
import hashlib
import time

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.agent.discovery.web import HOST, Asked, authority, authority_file, send, serving
from tests.cases import rows
from tests.extensions.messages.parts import SERVER, delivering, letter_of, posting
from tests.stub_server import Serve, StubHandler

from bespeak.documents.projections.manifest_signature import verify_content
from bespeak.extensions.messages.transports import MOST_ANSWER, SIGNATURE, Delivered, Retry, Undeliverable, Webhook
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.address_guard import AddressGuard, AllowedHosts
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.tls import server_context
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.signed_request import SignedRequest, verify_signed

pytestmark = pytest.mark.anyio


async def test_a_posting_is_sent_over_tls_with_its_id_as_key_and_a_signature() -> None:
    key = OKPKey.generate_key("Ed25519")
    with authority_file() as ca_file:
        async with serving(lambda _, writer: send(writer, 204)) as web:
            delivery = delivering(Signer(key), ca_file=ca_file)
            outcome = await delivery.deliver(f"{web.url}/hook?token=1", posting(subject="Hello"))
    assert outcome == Delivered({"status": 204})
    [asked] = web.asked
    assert (asked.method, asked.target, asked.headers["idempotency-key"]) == ("POST", "/hook?token=1", "posting-1")
    assert letter_of(asked) == {
        "posting_id": "posting-1",
        "kind": "notification",
        "server_id": SERVER,
        "sender": "a" * 64,
        "to": f"{web.url}/hook?token=1",
        "subject": "Hello",
        "content": {"text": "hello"},
    }
    assert verify_content(asked.headers[SIGNATURE.lower()], asked.body, key).state == "valid"


async def test_a_server_without_a_trusted_certificate_gets_nothing() -> None:
    async with serving(lambda _, writer: send(writer, 204)) as web:
        outcome = await delivering().deliver(f"{web.url}/hook", posting())
    assert isinstance(outcome, Retry)
    assert web.asked == []


@rows(
    "status, kind",
    (200, Delivered),
    (202, Delivered),
    (302, Undeliverable),
    (404, Undeliverable),
    (410, Undeliverable),
    (408, Retry),
    (429, Retry),
    (500, Retry),
    (503, Retry),
)
async def test_the_status_decides_what_follows(status: int, kind: type) -> None:
    async with serving(lambda _, writer: send(writer, status, location="/elsewhere"), tls=False) as web:
        assert isinstance(await delivering().deliver(web.url, posting()), kind)
        assert len(web.asked) == 1  # a redirect is not followed


async def test_a_receiver_may_say_when_to_try_again() -> None:
    async with serving(lambda _, writer: send(writer, 503, retry_after="7"), tls=False) as web:
        outcome = await delivering().deliver(web.url, posting())
    assert isinstance(outcome, Retry)
    assert outcome.after == 7.0


async def test_a_receiver_that_hangs_ends_with_the_attempt() -> None:
    closed = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # to the end of the connection
        closed.set()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        address = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/"
        assert isinstance(await delivering(timeout=0.2).deliver(address, posting()), Retry)
        async with asyncio.timeout(10):
            await closed.wait()


async def test_dropped_connections_and_unknown_names_are_tried_again() -> None:
    async with serving(lambda _, writer: writer.close(), tls=False) as web:
        assert isinstance(await delivering().deliver(web.url, posting()), Retry)
    assert isinstance(await delivering().deliver(web.url, posting()), Retry)  # nobody listens any more
    assert isinstance(await delivering().deliver("https://nowhere.test/", posting()), Retry)


async def test_of_a_huge_answer_only_the_beginning_is_read() -> None:
    sent = 0

    async def flood(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n")
        while sent < 10_000_000:
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    async with serving(flood, tls=False) as web:
        assert await delivering().deliver(web.url, posting()) == Delivered({"status": 200})
        outcome = await delivering().deliver(web.url, posting(kind="verification"))
        assert outcome == Delivered({"status": 200}, b"x" * MOST_ANSWER)


@rows(
    "address",
    "https://127.0.0.1/",
    "https://localhost/",
    "https://2130706433/",
    "https://[::ffff:10.0.0.1]/",
    "https://intranet.test/",
    "http://public.example/",
    "https://user:secret@public.example/",
    f"ftp://{HOST}/",
    "https:///",
)
async def test_private_and_other_addresses_are_not_connected_to(address: str) -> None:
    assert isinstance(await delivering().deliver(address, posting()), Undeliverable)


async def test_a_name_is_resolved_once_so_that_it_cannot_change_after_the_check() -> None:
    answers = [["192.0.2.1", "127.0.0.1"], ["127.0.0.1"], ["93.184.216.34"]]
    asked: list[str] = []

    async def rebind(host: str, _: int) -> list[str]:
        asked.append(host)
        return answers.pop(0)

    async with serving(lambda _, writer: send(writer, 200), tls=False) as web:
        allowed = AllowedHosts()
        hook = Webhook(AddressGuard(allowed, resolve=rebind), allowed, None, SERVER, None)
        for _ in range(2):
            outcome = await hook.deliver(f"https://rebinding.example:{web.port}/", posting())
            assert isinstance(outcome, Undeliverable)
            assert "127.0.0.1" not in outcome.message
        assert asked == ["rebinding.example"] * 2
        assert web.asked == []


async def test_the_connection_uses_the_address_that_was_checked() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def rebind(_: str, __: int) -> list[str]:
        return answers.pop(0)

    async with serving(lambda _, writer: send(writer, 200), tls=False) as web:
        allowed = AllowedHosts((f"rebinding.example:{web.port}",))
        hook = Webhook(AddressGuard(allowed, resolve=rebind), allowed, None, SERVER, None)
        outcome = await hook.deliver(f"http://rebinding.example:{web.port}/", posting())
        assert isinstance(outcome, Delivered)
    assert web.asked[0].headers["host"] == f"rebinding.example:{web.port}"
    assert answers == [["10.0.0.1"]]


AGENT = "b" * 64


class Answering(StubHandler):
    """Answers every request with one status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(self.status, b"{}")


async def test_agent_of_address_is_notified_under_identity_of_the_server(serve: Serve, handler: StubHandler) -> None:
    _, port = await serve()
    key = OKPKey.generate_key("Ed25519")
    delivery = delivering(Signer(key), allow=("127.0.0.1",))
    address = f"agtp://{AGENT}@127.0.0.1:{port}"
    assert isinstance(await delivery.deliver(address, posting(expires=2e9)), Delivered)
    [request] = handler.requests
    assert (request.method, request.path, request.headers["idempotency-key"]) == ("NOTIFY", "/", "posting-1")
    body = msgspec.json.decode(request.body)
    assert (body["recipient"], body["expiry"]) == (AGENT, "2033-05-18T03:33:20Z")
    assert (body["delivery_guarantee"], body["content"]["content"]) == ("at_least_once", {"text": "hello"})
    own = hashlib.sha256(f"agtp://{SERVER}".encode()).hexdigest()
    public = Signer(key).private_key.public_key()
    signed = verify_signed(request, server_id="127.0.0.1", key_of=lambda _: public, now=time.time(), max_age=60.0)
    assert isinstance(signed, SignedRequest)
    assert signed.agent_id == own


async def test_without_agent_in_the_address_the_posting_says_whom_it_is_for(serve: Serve, handler: StubHandler) -> None:
    _, port = await serve()
    delivery = delivering(allow=("127.0.0.1",), agent_id="c" * 64)
    await delivery.deliver(f"agtp://127.0.0.1:{port}", posting(recipient=AGENT))
    await delivery.deliver(f"agtp://127.0.0.1:{port}", posting())
    recipients = [msgspec.json.decode(request.body)["recipient"] for request in handler.requests]
    assert recipients == [AGENT, f"agtp://127.0.0.1:{port}"]
    assert handler.requests[0].headers["agent-id"] == "c" * 64


async def test_other_machines_are_called_over_tls_with_name_of_the_address(serve: Serve, handler: StubHandler) -> None:
    leaf = authority().issue_cert(HOST)
    with leaf.private_key_and_cert_chain_pem.tempfile() as pem, authority().cert_pem.tempfile() as ca_file:
        _, port = await serve(ssl=server_context(pem))
        trusting = await delivering(ca_file=ca_file).deliver(f"agtp://{HOST}:{port}", posting())
        other_name = delivering(ca_file=ca_file, allow=("other.test",))
        misled = await other_name.deliver(f"agtp://other.test:{port}", posting())
        doubting = await delivering().deliver(f"agtp://{HOST}:{port}", posting())
    assert isinstance(trusting, Delivered)
    assert (type(misled), type(doubting)) == (Retry, Retry)
    assert len(handler.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, Delivered), (202, Delivered), (262, Undeliverable), (404, Undeliverable), (429, Retry), (503, Retry)],
)
async def test_agtp_notice_the_status_decides_what_follows(status: int, kind: type) -> None:

    server = AgtpServer(Answering(status))
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        outcome = await delivering(allow=("127.0.0.1",)).deliver(f"agtp://127.0.0.1:{port}", posting())
        assert isinstance(outcome, kind)
    finally:
        await server.close()


async def test_what_cannot_be_reached_is_tried_again_and_what_may_not_be_is_not(unused_port: int) -> None:
    allowed = delivering(allow=("127.0.0.1",))
    assert isinstance(await allowed.deliver(f"agtp://127.0.0.1:{unused_port}", posting()), Retry)
    assert isinstance(await allowed.deliver("agtp://nowhere.test", posting()), Retry)
    for address in (f"agtp://localhost:{unused_port}", "agtp://10.0.0.1", "agtp://x y", f"agtp://{'h' * 400}"):
        assert isinstance(await allowed.deliver(address, posting()), Undeliverable)
