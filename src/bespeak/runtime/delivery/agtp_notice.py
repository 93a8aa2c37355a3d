"""AGTP: postings as NOTIFY requests to other servers, under this server's own identity."""

from __future__ import annotations

import hashlib
import ssl
import time
from pathlib import Path
from typing import Final

import msgspec

from bespeak.errors import BespeakError, ConfigError
from bespeak.protocol import status
from bespeak.protocol.address_guard import AddressGuard, BlockedAddress
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.exchange.headers import MEDIA_AGTP
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.locator import Locator, parse_uri
from bespeak.protocol.pinned_transport import describe_failure
from bespeak.protocol.tls import client_context
from bespeak.protocol.wire.limits import Limits
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.delivery.channel import Delivered, Outcome, Retry, Undeliverable, blocked
from bespeak.runtime.delivery.posting import Posting
from bespeak.runtime.signer import Signer

_LIMITS: Final = Limits(body=64 * 1024)
_LONGEST: Final = 300
_LATER: Final = frozenset({status.TIMEOUT, status.CONFLICT, status.RATE_LIMITED})


class AgtpNotice:
    """Sends NOTIFY to `agtp://host[:port]` or `agtp://AGENT-ID@host[:port]`."""

    def __init__(
        self,
        guard: AddressGuard,
        ca_file: Path | None,
        server_id: str,
        agent_id: str | None,
        signer: Signer | None,
    ) -> None:
        """Create the channel. Servers on this machine are called without TLS, unless their authority is known."""
        self._guard = guard
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None if ca_file is None else client_context(ca_file)
        self._server_id = server_id
        self._agent_id = agent_id or hashlib.sha256(f"agtp://{server_id}".encode()).hexdigest()
        self._signer = signer

    def locate(self, address: str) -> str | Undeliverable:
        """Return the host."""
        parsed = _parse(address)
        return parsed if isinstance(parsed, Undeliverable) else parsed.host.lower()

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Send the letter as the content of a NOTIFY."""
        locator = _parse(address)
        if isinstance(locator, Undeliverable):
            return locator
        body = self._body(address, locator, posting)
        answer = await self.request(address, "NOTIFY", "/", posting.posting_id, body)
        return _judge(answer) if isinstance(answer, ResponseMessage) else answer

    async def request(
        self, address: str, method: str, path: str, task_id: str, body: bytes
    ) -> ResponseMessage | Retry | Undeliverable:
        """Call an endpoint of the server at an address. `task_id` is also the key for duplicates."""
        locator = _parse(address)
        if isinstance(locator, Undeliverable):
            return locator
        found = await self._guard.addresses(locator.host, locator.port)
        if isinstance(found, BlockedAddress):
            return blocked(found)
        tls = self._choose_tls(locator)
        fault = ""
        for host in found:
            try:
                connection = await AgtpClientConnection.open(
                    host, locator.port, ssl=tls, limits=_LIMITS, server_name=locator.host
                )
            except OSError as error:
                fault = describe_failure(error)
                continue
            try:
                headers = self._headers(locator, method, path, task_id, body)
                return await connection.request(method, path, headers.items(), body)
            except (OSError, BespeakError) as error:
                return Retry("The receiver did not answer.", describe_failure(error), sent=True)
            finally:
                connection.abort()
        return Retry("The receiver did not answer.", fault)

    def _choose_tls(self, locator: Locator) -> ssl.SSLContext | None:
        if self._tls is None and not locator.address.is_loopback:
            self._tls = client_context()  # loading the authorities of the system is slow
        return None if self._ca_file is None and locator.address.is_loopback else self._tls

    def _body(self, address: str, locator: Locator, posting: Posting) -> bytes:
        parameters = {
            "recipient": locator.agent_id or posting.recipient or address,
            "content": posting.letter(address, self._server_id),
            "delivery_guarantee": posting.guarantee,
        }
        if posting.expires is not None:
            parameters["expiry"] = write_instant(posting.expires)
        return msgspec.json.encode(parameters)

    def _headers(self, locator: Locator, method: str, path: str, task_id: str, body: bytes) -> dict[str, str]:
        headers = {
            "Agent-ID": self._agent_id,
            "Task-ID": task_id,
            "Idempotency-Key": task_id,
            "Content-Type": MEDIA_AGTP,
        }
        if self._signer is not None:
            from bespeak.state.identity.signed_request import sign_request  # noqa: PLC0415 - loads cryptography

            # The audience is the host that the address names: another server cannot use the signature.
            headers["Agent-Signature"] = sign_request(
                method,
                path,
                headers,
                body,
                key=self._signer.private_key,
                server_id=locator.host,
                now=time.time(),
                key_id=self._signer.key_id,
            )
        return headers


def _parse(address: str) -> Locator | Undeliverable:
    if len(address) > _LONGEST:
        return Undeliverable(f"An AGTP address must not be longer than {_LONGEST} characters.")
    try:
        return parse_uri(address)
    except ConfigError as error:
        return Undeliverable(str(error))


def _judge(response: ResponseMessage) -> Outcome:
    code = response.status
    if status.is_success(code):
        return Delivered({"status": code}, response.body)
    message = f"The receiver answered {code}."
    return Retry(message) if code >= 500 or code in _LATER else Undeliverable(message)
