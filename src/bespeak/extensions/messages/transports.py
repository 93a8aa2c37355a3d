"""Transports of postings, each for addresses of one scheme: webhooks, and NOTIFY to other AGTP servers."""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from bespeak.errors import BespeakError, ConfigError
from bespeak.extensions.messages.posting import VERIFICATION, Posting
from bespeak.protocol import address_guard, status
from bespeak.protocol.address import Locator, parse_uri
from bespeak.protocol.address_guard import AddressGuard, AllowedHosts, BlockedAddress, WebAddress, describe_failure
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_JSON
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.tls import client_context
from bespeak.protocol.wire.messages import Limits, ResponseMessage
from bespeak.runtime.identity.signer import Signer

if TYPE_CHECKING:
    import httpx


class Delivered(msgspec.Struct, frozen=True):
    """The receiver has taken the posting."""

    confirmation: Mapping[str, Any] = msgspec.field(default_factory=dict)  # what the channel says about it
    answer: bytes = b""  # beginning of the receiver's answer, if the posting asks for one


class Retry(msgspec.Struct, frozen=True):
    """The attempt failed; a later one may succeed."""

    message: str  # what callers are told
    detail: str = ""  # what only the operator is told: it may show names and addresses inside a network
    after: float | None = None  # seconds that the receiver asks to wait
    sent: bool = False  # True if the receiver may have taken it all the same


class Undeliverable(msgspec.Struct, frozen=True):
    """No attempt can succeed."""

    message: str
    detail: str = ""  # as in Retry


def blocked(reason: BlockedAddress) -> Retry | Undeliverable:
    """Return what the guard's refusal means for a posting."""
    if not reason.found:
        return Retry("The receiver's name cannot be resolved.", reason.message)
    return Undeliverable("The address is not public, and the operator does not allow it.", reason.message)


Outcome = Delivered | Retry | Undeliverable


class Transport(Protocol):
    """Delivers to addresses of one scheme."""

    def locate(self, address: str) -> str | Undeliverable:
        """Return the domain that an address belongs to, empty if it has none, or what is wrong with the address."""
        ...

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Make one attempt. It is cancelled when its time is over, and must not leave anything open."""
        ...


MOST_ANSWER: Final = 16 * 1024  # bytes of an answer that are read, if any are
SIGNATURE: Final = "Server-Signature"  # detached JWS of the body, by the key that signs the manifest
_LATER: Final = frozenset({408, 425, 429})
_MOST_DIGITS: Final = 6


class Webhook:
    """Posts JSON to web addresses. It follows no redirects, sends no credentials and connects to checked addresses."""

    def __init__(
        self, guard: AddressGuard, allowed: AllowedHosts, ca_file: Path | None, server_id: str, signer: Signer | None
    ) -> None:
        self._guard = guard
        self._allowed = allowed
        self._tls = None if ca_file is None else address_guard.trust(ca_file)
        self._server_id = server_id
        self._signer = signer

    def locate(self, address: str) -> str | Undeliverable:
        parsed = self.parse(address)
        return parsed if isinstance(parsed, Undeliverable) else parsed.origin.host.lower()

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Post the letter; any status from 200 to 299 means that it is delivered."""
        import httpx  # noqa: PLC0415 - slow to load

        parsed = self.parse(address)
        if isinstance(parsed, Undeliverable):
            return parsed
        body = msgspec.json.encode(posting.letter(address, self._server_id))
        headers = {
            "Content-Type": MEDIA_JSON,
            "Content-Length": str(len(body)),
            "Accept": MEDIA_JSON,
            "Accept-Encoding": "identity",
            "User-Agent": "bespeak",
            "Idempotency-Key": posting.posting_id,
        }
        if self._signer is not None:
            headers[SIGNATURE] = self._signer.sign(body)
        transport = self.open()
        try:
            response = await transport.send("POST", parsed, headers, body)
            return judge(response, await _read(response) if posting.kind == VERIFICATION else b"")
        except address_guard.BlockedAddressError as error:
            return blocked(error.blocked)
        except (httpx.TransportError, OSError) as error:
            return Retry("The receiver did not answer.", describe_failure(error))
        finally:
            await transport.close()

    def open(self) -> address_guard.PinnedTransport:
        """Return a transport for one exchange: names are resolved and checked each time, and nothing stays open."""
        return address_guard.PinnedTransport(self._guard, self._tls)

    def parse(self, address: str) -> WebAddress | Undeliverable:
        """Return an address that may be asked, if its host is; plain http is only for hosts that are allowed."""
        parsed = address_guard.parse_web_address(address, insecure=True)
        if not isinstance(parsed, WebAddress):
            return Undeliverable(str(parsed))
        origin = parsed.origin
        if origin.scheme == "http" and (origin.host, origin.port) not in self._allowed:
            return Undeliverable("Plain http is only for hosts that the operator allows; use https.")
        return parsed


def judge(response: httpx.Response, answer: bytes = b"") -> Outcome:
    code = response.status_code
    if 200 <= code < 300:
        return Delivered({"status": code}, answer)
    message = f"The receiver answered {code}."
    if code >= 500 or code in _LATER:
        wait = response.headers.get("retry-after", "")
        usable = wait.isascii() and wait.isdigit() and len(wait) <= _MOST_DIGITS
        return Retry(message, after=float(wait) if usable else None)
    return Undeliverable(f"{message} Redirects are not followed." if code < 400 else message)


async def _read(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk[: MOST_ANSWER - len(body)]
        if len(body) >= MOST_ANSWER:
            break
    return body


_LIMITS: Final = Limits(body=64 * 1024)
_LONGEST: Final = 300
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_NOTICE_LATER: Final = frozenset({status.TIMEOUT, status.CONFLICT, status.RATE_LIMITED})


class AgtpNotice:
    """Sends NOTIFY to `agtp://host[:port]` or `agtp://AGENT-ID@host[:port]`."""

    def __init__(
        self,
        guard: AddressGuard,
        ca_file: Path | None,
        server_id: str,
        agent_id: str | None,
        signer: Signer | None,
        *,
        limits: Limits = _LIMITS,
    ) -> None:
        """Create the channel. Servers on this machine are called without TLS, unless their authority is known."""
        self._guard = guard
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None if ca_file is None else client_context(ca_file)
        self._server_id = server_id
        self.agent_id = agent_id or hashlib.sha256(f"agtp://{server_id}".encode()).hexdigest()
        self._signer = signer
        self._limits = limits

    def locate(self, address: str) -> str | Undeliverable:
        parsed = _parse(address)
        return parsed if isinstance(parsed, Undeliverable) else parsed.host.lower()

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        locator = _parse(address)
        if isinstance(locator, Undeliverable):
            return locator
        parameters = {
            "recipient": locator.agent_id or posting.recipient or address,
            "content": posting.letter(address, self._server_id),
            "delivery_guarantee": posting.guarantee,
        }
        if posting.expires is not None:
            parameters["expiry"] = write_instant(posting.expires)
        answer = await self.request(address, "NOTIFY", "/", posting.posting_id, msgspec.json.encode(parameters))
        return _judge(answer) if isinstance(answer, ResponseMessage) else answer

    async def request(
        self, address: str, method: str, path: str, task_id: str, body: bytes, *, proof: Mapping[str, str] = _NONE
    ) -> ResponseMessage | Retry | Undeliverable:
        """Call an endpoint of the server at an address. `task_id` is also the key for duplicates.

        Without a token in `proof`, it is called as the server itself.
        """
        locator = _parse(address)
        if isinstance(locator, Undeliverable):
            return locator
        found = await self._guard.addresses(locator.host, locator.port)
        if isinstance(found, BlockedAddress):
            return blocked(found)
        if self._tls is None and not locator.address.is_loopback:
            self._tls = client_context()  # loading the authorities of the system is slow
        tls = None if self._ca_file is None and locator.address.is_loopback else self._tls
        fault = ""
        for host in found:
            try:
                connection = await AgtpClientConnection.open(
                    host, locator.port, ssl=tls, limits=self._limits, server_name=locator.host
                )
            except OSError as error:
                fault = describe_failure(error)
                continue
            try:
                headers = {"Task-ID": task_id, "Idempotency-Key": task_id, "Content-Type": MEDIA_AGTP, **proof}
                if "Authorization" not in proof:
                    self._prove(locator, method, path, headers, body)
                return await connection.request(method, path, headers.items(), body)
            except (OSError, BespeakError) as error:
                return Retry("The receiver did not answer.", describe_failure(error), sent=True)
            finally:
                connection.abort()
        return Retry("The receiver did not answer.", fault)

    def _prove(self, locator: Locator, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        headers["Agent-ID"] = self.agent_id
        if self._signer is not None:
            from bespeak.state.identity.signed_request import sign_request  # noqa: PLC0415 - loads cryptography

            # The audience is the host that the address names: another server cannot use the signature.
            key, key_id, now = self._signer.private_key, self._signer.key_id, time.time()
            headers["Agent-Signature"] = sign_request(
                *(method, path, headers, body), key=key, server_id=locator.host, now=now, key_id=key_id
            )


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
    return Retry(message) if code >= 500 or code in _NOTICE_LATER else Undeliverable(message)
