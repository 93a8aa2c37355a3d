"""HTTP transport of the client: sends a request, reads the whole response, converts errors to those of AGTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from bespeak.agent.client.problem_details import agtp_status, error_body
from bespeak.agent.discovery.body_reader import BodyError, read_body
from bespeak.agent.discovery.fetcher import MOST_REDIRECTS, REDIRECTS
from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol import status as codes
from bespeak.protocol.pinned_transport import PinnedTransport, find_cause
from bespeak.protocol.web_address import AddressFault, Origin, WebAddress, parse_address, resolve_address
from bespeak.protocol.wire.limits import RESPONSE_LIMITS
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.protocol.wire.writer import Pairs

_AGIS_METHOD: Final = "X-AGIS-Method"


class HttpExchanger:
    """Sends requests to absolute addresses. Follows redirects only for safe methods and only on the same host."""

    def __init__(self, transport: PinnedTransport, *, insecure: bool = False, most: int = RESPONSE_LIMITS.body) -> None:
        self._transport = transport
        self._insecure = insecure
        self._most = most

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return its response. Raises OSError or RemoteProtocolError if there is none."""
        address = parse_address(target, insecure=self._insecure)
        if isinstance(address, AddressFault):
            raise LocalProtocolError(f"{address.message}.")
        followed = 0
        while True:
            message = await self.exchange(method, address, dict(headers), body, retry=retry)
            location = message.headers.get("location")
            if method not in ("GET", "HEAD") or message.status not in REDIRECTS or location is None:
                return message
            followed += 1
            onward = resolve_address(location, address, insecure=self._insecure)
            if isinstance(onward, AddressFault) or onward.origin != address.origin or followed > MOST_REDIRECTS:
                return message
            address = onward

    async def exchange(
        self, method: str, address: WebAddress, headers: Mapping[str, str], body: bytes, *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return its response, whatever the status."""
        import httpx  # noqa: PLC0415 - slow to load, and a client of AGTP does without

        given = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "bespeak", **headers}
        try:
            return await self._once(method, address, given, body)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            if not retry:
                raise _translated(error) from error
        except httpx.TransportError as error:
            raise _translated(error) from error
        # The server may have closed an idle connection while the request was on its way.
        try:
            return await self._once(method, address, given, body)
        except httpx.TransportError as error:
            raise _translated(error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _once(self, method: str, address: WebAddress, headers: Mapping[str, str], body: bytes) -> ResponseMessage:
        response = await self._transport.send(method, address, headers, body)
        try:
            content = await read_body(response, self._most) if method != "HEAD" else b""
        except BodyError as error:
            raise RemoteProtocolError(f"The answer of {address.origin} cannot be read: {error}.") from error
        finally:
            await response.aclose()
        found = {name.lower(): text for name, text in response.headers.items()}
        reason = response.reason_phrase or codes.REASONS.get(response.status_code, "")
        return ResponseMessage(response.status_code, reason, found, content)


class FaceExchanger:
    """Sends AGTP requests to the HTTP face of a service: `BOOK /room` becomes POST `/room:book`.

    For a service that follows only AGIS 10.1, the method is sent in a header and the path is unchanged.
    """

    def __init__(self, http: HttpExchanger, origin: Origin, prefix: str = "", *, by_header: bool = False) -> None:
        self._http = http
        self._origin = origin
        self._prefix = prefix
        self._by_header = by_header

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return the response with AGTP's status and `error` object."""
        path, mark, query = target.partition("?")
        given = dict(headers)
        if self._by_header or not (method.isascii() and method.isalpha()):
            given[_AGIS_METHOD] = method
        else:
            path = f"{path}:{method.lower()}"
        address = WebAddress(self._origin, f"{self._prefix}{path}{mark}{query}")
        message = await self._http.exchange("POST", address, given, body, retry=retry)
        return in_agtp_terms(message)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def in_agtp_terms(message: ResponseMessage) -> ResponseMessage:
    """Convert an HTTP response into an AGTP response."""
    number = agtp_status(message.status, message.headers)
    body = message.body if codes.is_success(number) else error_body(number, message.headers, message.body)
    reason = codes.REASONS.get(number, message.reason)
    return ResponseMessage(number, reason, message.headers, body)


def _translated(error: Exception) -> Exception:
    """Convert an error of httpx into OSError or RemoteProtocolError."""
    import httpx  # noqa: PLC0415 - as above

    if isinstance(error, httpx.LocalProtocolError):
        return LocalProtocolError(f"The request cannot be sent: {error}.")
    if isinstance(error, httpx.RemoteProtocolError):
        return RemoteProtocolError(f"{error}.")
    for kind in (ssl.SSLError, ConnectionRefusedError):
        behind = find_cause(error, kind)
        if behind is not None:
            return behind
    return ConnectionResetError(str(error) or type(error).__name__)
