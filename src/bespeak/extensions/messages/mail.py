"""E-mail: postings through the operator's mail server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import aiosmtplib
import msgspec

from bespeak.extensions.messages.posting import REPORT, Posting
from bespeak.extensions.messages.settings import SmtpSettings
from bespeak.extensions.messages.transports import Delivered, Outcome, Retry, Undeliverable
from bespeak.protocol.address_guard import describe_failure, trust

SCHEME: Final = "mailto:"
# Without `%`, with which addresses name relays, and `?`, with which they name further headers.
_MAILBOX: Final = re.compile(
    r"(?P<local>[A-Za-z0-9!#$&'*+/=^_`{|}~-]+(?:\.[A-Za-z0-9!#$&'*+/=^_`{|}~-]+)*)@"
    r"(?P<domain>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)"
)
_LONGEST: Final = 254
_FAREWELL: Final = 1.0  # seconds for the end of a conversation whose message is delivered


class Mail:
    """Sends to `mailto:` addresses. The mail server is the operator's: callers cannot name another one."""

    def __init__(self, settings: SmtpSettings, password: str | None, server_id: str, ca_file: Path | None) -> None:
        self._settings = settings
        self._password = password
        self._server_id = server_id
        self._tls = None if settings.tls == "none" else trust(ca_file)

    def locate(self, address: str) -> str | Undeliverable:
        mailbox = address[len(SCHEME) :]
        found = _MAILBOX.fullmatch(mailbox) if len(mailbox) <= _LONGEST else None
        if found is None or len(found["local"]) > 64:
            return Undeliverable(f"{mailbox[:80]!r} is not a valid mail address; write name@domain.")
        return found["domain"].lower()

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Hand the message to the mail server. Its acceptance counts as delivery."""
        fault, mailbox, settings = self.locate(address), address[len(SCHEME) :], self._settings
        if isinstance(fault, Undeliverable):
            return fault
        message = self._compose(mailbox, posting)
        client = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            username=settings.user,
            password=self._password,
            use_tls=settings.tls == "tls",
            start_tls=settings.tls == "starttls",
            tls_context=self._tls,
        )
        try:
            await client.connect()
            _, answer = await client.send_message(message, sender=settings.sender, recipients=[mailbox])
            with contextlib.suppress(aiosmtplib.SMTPException, TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await client.quit()
        except aiosmtplib.SMTPAuthenticationError as error:
            return Retry("The mail server is not available.", f"It refuses the login: {error.code}.")
        except aiosmtplib.SMTPRecipientsRefused as error:
            return _judge(error.recipients[0])
        except aiosmtplib.SMTPResponseException as error:
            return _judge(error)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            return Retry("The mail server is not available.", describe_failure(error))
        finally:
            client.close()
        return Delivered({"message_id": str(message["Message-ID"]), "response": answer[:200]})

    def _compose(self, mailbox: str, posting: Posting) -> EmailMessage:
        message = EmailMessage(policy=SMTP)
        message["From"] = self._settings.sender
        message["To"] = mailbox
        subject = posting.subject or f"{posting.kind} from {self._server_id}"
        # One header line: a line break would begin another header.
        printable = "".join(character if character.isprintable() else " " for character in subject)
        message["Subject"] = " ".join(printable.split())[:200]
        message["Date"] = formatdate()
        # The same for all attempts, so that a mailbox can drop duplicates.
        host = re.sub(r"[^A-Za-z0-9.-]", "-", self._server_id)[:200] or "localhost"
        message["Message-ID"] = f"<{posting.posting_id}@{host}>"
        message["Auto-Submitted"] = "auto-generated"
        if posting.kind == REPORT:
            document = posting.content
            about = f"{document['title']}\n\n{document['file_name']}, {document['bytes']} bytes, {document['digest']}\n"
            message.set_content(_text(about))
            content = document["text"].encode() if "text" in document else base64.b64decode(document["base64"])
            kind, _, subtype = document["content_type"].partition(";")[0].partition("/")
            message.add_attachment(content, maintype=kind, subtype=subtype, filename=document["file_name"])
        else:
            message.set_content(_text(posting.content))
        return message


def _text(content: Any) -> str:
    text = content if isinstance(content, str) else msgspec.json.format(msgspec.json.encode(content)).decode()
    return text.encode(errors="replace").decode()  # lone surrogates cannot be sent


def _judge(error: aiosmtplib.SMTPResponseException) -> Outcome:
    message = f"The mail server answered {error.code}."
    return Undeliverable(message, error.message[:200]) if error.code >= 500 else Retry(message, error.message[:200])
