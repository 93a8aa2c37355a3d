"""E-mail goes through the operator's mail server, a real one here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope
from tests.agent.discovery.web import authority_file, server_tls
from tests.extensions.messages.parts import SERVER, posting

from bespeak.contract.delivery import SmtpSettings
from bespeak.extensions.messages.mail import Mail
from bespeak.extensions.messages.transports import Delivered, Retry, Undeliverable
from bespeak.extensions.reports.methods import Document

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


@pytest.mark.parametrize(
    "address",
    [
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
    ],
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
    document = Document.of("log", "Weekly łog", "pdf", "ann@acme.example", b"%PDF-1.7 \xff").letter("doc-1")
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
