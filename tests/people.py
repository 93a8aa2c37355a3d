"""People for tests: recipients, the mail server that they read, and links in their mail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

from joserfc.jwk import OKPKey
from tests.extensions.messages.test_mail import Mailbox, mail_server
from tests.stateful import StatefulBench, keeping

from bespeak.contract.participant import JoinedFunction, Participant, QueueOptions
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.people import Answers, AnswerView
from bespeak.extensions.messages.settings import DeliverySettings, PeopleSettings, PersonSettings, SmtpSettings
from bespeak.protocol.exchange.messages import Connection

URL = "https://rooms.acme.example"
DESK = "desk@acme.example"


def recipient_of(function: Callable[..., Any], name: str = "front-desk", *, retries: int = 0) -> Participant:
    """Return a recipient whose function takes what is sent to it."""
    return Participant(
        kind="recipient",
        name=name,
        functions={"run": JoinedFunction(function=function, method="NOTIFY", impact="reversible")},
        methods=("ALERT", "CHECK", "REPLY", "CANCEL"),
        options=QueueOptions(concurrency=4, retries=retries, lease=60.0),
    )


class Reachable:
    """A service whose people read mail."""

    def __init__(self, bench: StatefulBench, mailbox: Mailbox) -> None:
        self.bench = bench
        self.mailbox = mailbox

    @property
    def answers(self) -> Answers:
        found = self.bench.bench.dispatcher.server.part("answers")
        assert isinstance(found, Answers)
        return found

    async def mail(self, number: int = 1) -> EmailMessage:
        """Wait for so many mails; return the last."""
        async with asyncio.timeout(20):
            while len(self.mailbox.received) < number:
                await asyncio.sleep(0.005)
        return self.mailbox.received[number - 1][1]

    async def token(self, number: int = 1) -> str:
        """Return the token of the link in a mail."""
        found = re.search(rf"{URL}/acknowledge\?token=(\S+)", (await self.mail(number)).get_content())
        assert found is not None
        return found[1]

    async def answer(self, token: str, choice: str = "accepted", reason: str = "") -> AnswerView:
        return await self.answers.answer(token, choice, reason, Connection(address="127.0.0.1", face="http"))


@asynccontextmanager
async def reachable(
    *,
    people: dict[str, PersonSettings] | None = None,
    url: str | None = URL,
    keyed: bool = True,
    mailbox: Mailbox | None = None,
    key: OKPKey | None = None,
    **fields: Any,
) -> AsyncIterator[Reachable]:
    """Serve a service with a mail server; the front desk has a mail address by default."""
    mailbox = mailbox or Mailbox()
    async with mail_server(mailbox) as port:
        smtp = SmtpSettings(host="127.0.0.1", port=port, tls="none", sender="service@acme.example")
        given = {"front-desk": PersonSettings(mail=DESK)} if people is None else people
        tables = {"delivery": DeliverySettings(smtp=smtp), "people": PeopleSettings(people=given)}
        document = ServerDocument(extension_tables=tables, http=replace(HttpSettings(), url=url))
        if keyed:
            fields["signing_key"] = key or OKPKey.generate_key("Ed25519")
        async with keeping(document=document, **fields) as bench:
            yield Reachable(bench, mailbox)
