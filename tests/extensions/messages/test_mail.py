"""E-mail through a real mail server, and callbacks, which are used only if they agree to receive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope
from tests.agent.discovery.web import Asked, Script, always, authority_file, redirect, send, server_tls, serving
from tests.cases import rows
from tests.extensions.messages.parts import SERVER, letter_of, posting
from tests.queues import queue_of
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.mail import Mail
from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.messages.settings import DeliverySettings, SmtpSettings
from bespeak.extensions.messages.store import NextOutbox
from bespeak.extensions.messages.transports import Delivered, Retry, Undeliverable
from bespeak.extensions.reports.methods import ReportDocument
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response

pytestmark = pytest.mark.anyio


class Mailbox:
    """Keeps what it receives; refuses some recipients, as mail servers do."""

    def __init__(self) -> None:
        self.received: list[tuple[list[str], EmailMessage]] = []

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any) -> str:
        if address.startswith("unknown@"):
            return "550 no such user"
        if address.startswith("full@"):
            return "452 mailbox is full"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.SMTP)
        assert isinstance(message, EmailMessage)
        self.received.append((envelope.rcpt_tos, message))
        return "250 taken as 4711"


@asynccontextmanager
async def mail_server(mailbox: Mailbox, **options: Any) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, loop=loop, **options), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def mail(port: int, **settings: Any) -> Mail:
    given = {"host": "127.0.0.1", "port": port, "tls": "none", "sender": "desk@acme.example", **settings}
    return Mail(SmtpSettings(**given), None, SERVER, None)


async def test_a_posting_becomes_a_message_with_its_id() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        outcome = await mail(port).deliver(
            "mailto:ann@acme.example", posting(subject="Hello", content="Grüße\n.\nfrom us")
        )
    assert isinstance(outcome, Delivered)
    assert outcome.confirmation == {"message_id": f"<posting-1@{SERVER}>", "response": "taken as 4711"}
    [(recipients, message)] = mailbox.received
    assert recipients == ["ann@acme.example"]
    assert (message["From"], message["To"], message["Subject"]) == ("desk@acme.example", "ann@acme.example", "Hello")
    assert (message["Message-ID"], message["Auto-Submitted"]) == (f"<posting-1@{SERVER}>", "auto-generated")
    assert message.get_content().replace("\r\n", "\n") == "Grüße\n.\nfrom us\n"


async def test_other_content_is_written_as_json() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        await mail(port).deliver("mailto:ann@acme.example", posting(content={"text": "hello"}))
    assert '"text": "hello"' in mailbox.received[0][1].get_content()


async def test_a_line_break_in_a_subject_does_not_begin_a_header() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        subject = "Hi\r\nBcc: eve@evil.example\r\n\r\nBody\u2028x" + "y" * 500
        assert isinstance(await mail(port).deliver("mailto:ann@acme.example", posting(subject=subject)), Delivered)
    [(recipients, message)] = mailbox.received
    assert recipients == ["ann@acme.example"]
    assert message["Bcc"] is None
    assert message["Subject"].startswith("Hi Bcc: eve@evil.example Body x")


@rows(
    "address",
    "",
    "ann",
    "@acme.example",
    "ann@",
    "ann@acme.example\r\nRCPT TO:<eve@evil.example>",
    "a b@acme.example",
    "ann@acme.example,eve@evil.example",
    "ann@acme.example?bcc=eve@evil.example",
    "eve%evil.example@acme.example",
    "<ann@acme.example>",
    "ann@-acme.example",
    '"ann"@acme.example',
    "x" * 65 + "@acme.example",
    "ann@[127.0.0.1]",
)
async def test_only_one_plain_mailbox_is_an_address(address: str) -> None:
    assert isinstance(await mail(1).deliver(f"mailto:{address}", posting()), Undeliverable)


async def test_the_answer_of_the_mail_server_decides_what_follows() -> None:
    async with mail_server(Mailbox()) as port:
        assert isinstance(await mail(port).deliver("mailto:unknown@acme.example", posting()), Undeliverable)
        assert isinstance(await mail(port).deliver("mailto:full@acme.example", posting()), Retry)
    assert isinstance(await mail(port).deliver("mailto:ann@acme.example", posting()), Retry)  # it does not listen


async def test_a_login_crosses_the_network_only_under_tls() -> None:
    logins: list[Any] = []

    def authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        logins.append(given)
        return AuthResult(success=given.password == b"secret", handled=False)

    options = {"tls_context": server_tls(), "require_starttls": True, "authenticator": authenticate}
    mailbox = Mailbox()
    with authority_file() as ca_file:
        async with mail_server(mailbox, **options) as port:
            settings = SmtpSettings(host="127.0.0.1", port=port, sender="desk@acme.example", user="desk", password="X")
            sent = await Mail(settings, "secret", SERVER, ca_file).deliver("mailto:ann@acme.example", posting())
            wrong = await Mail(settings, "guess", SERVER, ca_file).deliver("mailto:ann@acme.example", posting())
            untrusted = await Mail(settings, "secret", SERVER, None).deliver("mailto:ann@acme.example", posting())
    assert isinstance(sent, Delivered)
    assert (type(wrong), type(untrusted)) == (Retry, Retry)
    # A refused login is tried with each mechanism; an untrusted server sees none.
    assert [given.password for given in logins] == [b"secret", b"guess", b"guess"]


async def test_a_mail_server_without_tls_is_not_used_if_tls_is_wanted() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        assert isinstance(await mail(port, tls="starttls").deliver("mailto:ann@acme.example", posting()), Retry)
    assert mailbox.received == []


async def test_a_report_becomes_a_file() -> None:
    mailbox = Mailbox()
    document = ReportDocument.of("log", "Weekly łog", "pdf", "ann@acme.example", b"%PDF-1.7 \xff").letter("doc-1")
    async with mail_server(mailbox) as port:
        outcome = await mail(port).deliver("mailto:ann@acme.example", posting(kind="report", content=document))
    assert isinstance(outcome, Delivered)
    [(_, message)] = mailbox.received
    [file] = message.iter_attachments()
    assert (file.get_content_type(), file.get_filename(), file.get_content()) == (
        "application/pdf",
        "doc-1.pdf",
        b"%PDF-1.7 \xff",
    )
    about = message.get_body()
    assert about is not None
    assert "Weekly łog" in about.get_content()


def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, letter_of(asked)["content"])


def echo_for_another(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, {**letter_of(asked)["content"], "agent_id": "f" * 64})


def flood(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n" + b"[" * 1_000_000)


@asynccontextmanager
async def calling_back(**settings: Any) -> AsyncIterator[Callable[[str], Any]]:
    """Serve SUBMIT; yield a function that submits an item with a callback."""
    delivery = DeliverySettings(allow=("127.0.0.1",), **settings)
    document = ServerDocument(extension_tables={"delivery": delivery})
    async with keeping(participants=(queue_of(name="t"),), document=document) as bench:

        async def submit(callback: str) -> tuple[StatefulBench, Reply]:
            return bench, await bench.send("SUBMIT", "/", {"target": "t", "payload": {}, "callback": callback})

        yield submit


@pytest.mark.requirement("METHODS-10.5-2")
async def test_a_callback_that_repeats_the_challenge_for_the_agent_is_used() -> None:
    async with serving(echo, tls=False) as web, calling_back() as submit:
        _, reply = await submit(f"http://127.0.0.1:{web.port}/hook")
        assert reply.status == 200
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
    asked, told = map(letter_of, web.asked)
    assert (asked["kind"], asked["content"]["agent_id"]) == ("verification", AGENT)
    assert (told["kind"], told["content"]["tracking_id"]) == ("callback", reply.json["result"]["tracking_id"])


@pytest.mark.requirement("METHODS-10.5-2")
@pytest.mark.parametrize("script", [always(200), always(200, []), echo_for_another, always(500), redirect("/x"), flood])
async def test_a_callback_that_does_not_agree_is_refused_and_nothing_is_kept(script: Script) -> None:
    async with serving(script, tls=False) as web, calling_back() as submit:
        bench, reply = await submit(f"http://127.0.0.1:{web.port}/hook")
        assert (reply.status, reply.error["code"]) == (400, "callback-refused")
        assert await bench.store.read(NextOutbox(TOPIC)) is None
    assert len(web.asked) == 1


@pytest.mark.requirement("METHODS-10.5-1")
async def test_the_operator_may_vouch_for_a_callback_but_it_must_be_reachable() -> None:
    async with calling_back(recipients=("127.0.0.1",)) as submit:
        async with serving(always(204), tls=False) as web:
            assert (await submit(f"http://127.0.0.1:{web.port}/"))[1].status == 200
        assert (await submit(f"http://127.0.0.1:{web.port}/"))[1].status == 400


@pytest.mark.parametrize(
    "callback",
    ["https://10.0.0.1/", "agtp://localhost", "https://metadata.internal/", "mailto:ann@acme.example", "nonsense"],
)
async def test_private_and_unsuitable_callbacks_are_refused_without_details(callback: str) -> None:
    async with calling_back() as submit:
        _, reply = await submit(callback)
        assert (reply.status, reply.error["code"]) == (400, "callback-refused")
        assert "private" not in reply.error["message"]


async def test_an_agtp_server_answers_in_its_envelope() -> None:
    seen: list[Any] = []

    class Notified:
        def __call__(self, request: Request) -> Response:

            body = msgspec.json.decode(request.body)
            seen.append(body)
            return Response(200, msgspec.json.encode({"status": 200, "result": body["content"]["content"]}))

        def malformed(self, fault: Malformed, connection: Connection) -> Response:
            return Response(fault.status)

    server = AgtpServer(Notified())
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        async with calling_back() as submit:
            assert (await submit(f"agtp://127.0.0.1:{port}"))[1].status == 200
    finally:
        await server.close()
    assert seen[0]["recipient"] == AGENT


async def test_another_bespeak_server_answers_for_its_agents_and_takes_the_posting_into_their_inbox() -> None:
    ann = Agent(agent_id=AGENT, name="ann")
    async with keeping(agents=(ann,), require_known_agents=False) as home, calling_back() as submit:
        server = AgtpServer(home.bench.dispatcher)
        [(_, port)] = await server.start("127.0.0.1", 0)
        try:
            stranger = await submit(f"agtp://{'e' * 64}@127.0.0.1:{port}")
            assert stranger[1].error["code"] == "callback-refused"
            _, reply = await submit(f"agtp://127.0.0.1:{port}")
            assert reply.status == 200
            inbox: list[Any] = []
            async with asyncio.timeout(20):
                while not inbox:
                    inbox = (await home.send("QUERY", "/messages")).json["result"]["messages"]
        finally:
            await server.close()
    letter = inbox[0]["content"]
    assert (letter["kind"], letter["content"]["tracking_id"]) == ("callback", reply.json["result"]["tracking_id"])
