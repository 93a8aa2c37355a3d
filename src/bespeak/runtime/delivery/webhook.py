"""Webhooks: postings as HTTPS POST requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.protocol.address_guard import AddressGuard
from bespeak.protocol.allowed_hosts import AllowedHosts
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.pinned_transport import BlockedAddressError, PinnedTransport, describe_failure, trust
from bespeak.protocol.web_address import WebAddress, parse_address
from bespeak.runtime.delivery.channel import Delivered, Outcome, Retry, Undeliverable, blocked
from bespeak.runtime.delivery.posting import VERIFICATION, Posting
from bespeak.runtime.signer import Signer

if TYPE_CHECKING:
    import httpx

MOST_ANSWER: Final = 16 * 1024
"""Bytes of an answer that are read, if any are."""
SIGNATURE: Final = "Server-Signature"
"""Header with a detached JWS of the body, by the key that signs the server's manifest."""
_LATER: Final = frozenset({408, 425, 429})
_MOST_DIGITS: Final = 6


class Webhook:
    """Posts JSON to web addresses. It follows no redirects, sends no credentials and connects to checked addresses."""

    def __init__(
        self, guard: AddressGuard, allowed: AllowedHosts, ca_file: Path | None, server_id: str, signer: Signer | None
    ) -> None:
        self._guard = guard
        self._allowed = allowed
        self._tls = None if ca_file is None else trust(ca_file)
        self._server_id = server_id
        self._signer = signer

    def locate(self, address: str) -> str | Undeliverable:
        """Return the host."""
        parsed = self._parse(address)
        return parsed if isinstance(parsed, Undeliverable) else parsed.origin.host.lower()

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Post the letter; any status from 200 to 299 means that it is delivered."""
        import httpx  # noqa: PLC0415 - slow to load

        parsed = self._parse(address)
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
        # A transport for each attempt: names are resolved and checked each time, and nothing stays open.
        transport = PinnedTransport(self._guard, self._tls)
        try:
            response = await transport.send("POST", parsed, headers, body)
            return judge(response, await _read(response) if posting.kind == VERIFICATION else b"")
        except BlockedAddressError as error:
            return blocked(error.blocked)
        except (httpx.TransportError, OSError) as error:
            return Retry("The receiver did not answer.", describe_failure(error))
        finally:
            await transport.close()

    def _parse(self, address: str) -> WebAddress | Undeliverable:
        parsed = parse_address(address, insecure=True)
        if not isinstance(parsed, WebAddress):
            return Undeliverable(str(parsed))
        origin = parsed.origin
        if origin.scheme == "http" and (origin.host, origin.port) not in self._allowed:
            return Undeliverable("Plain http is only for hosts that the operator allows; use https.")
        return parsed


def judge(response: httpx.Response, answer: bytes = b"") -> Outcome:
    """Return what a status means for a posting."""
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
