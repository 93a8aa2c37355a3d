"""Single response of an address, and the classification of transport errors."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bespeak.agent.discovery.body_reader import BodyError, read_body
from bespeak.agent.discovery.document_kind import DocumentKind
from bespeak.agent.discovery.fetched import FaultKind, FetchFault, Source
from bespeak.protocol.exchange.media_type import essence
from bespeak.protocol.pinned_transport import find_cause
from bespeak.text.diagnostics.brief import brief

if TYPE_CHECKING:
    import httpx

_COOKIES: Final = frozenset({"set-cookie", "set-cookie2"})
"""Headers that are dropped because servers identify callers by them."""


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """Single response of an address."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    source: Source = "network"
    fault: FetchFault | None = None

    @property
    def media_type(self) -> str:
        """Media type in lower case, without parameters."""
        return essence(self.headers.get("content-type", ""))


async def take_answer(response: httpx.Response, kind: DocumentKind, url: str) -> FetchedResponse:
    """Convert a response; read its body if the status and the media type are accepted."""
    headers = {name.lower(): text for name, text in response.headers.items() if name.lower() not in _COOKIES}
    answer = FetchedResponse(response.status_code, headers)
    if response.status_code != 200:
        return answer
    if not kind.takes(answer.media_type):
        return answer  # the body of another media type is not read
    try:
        return replace(answer, body=await read_body(response, kind.most, cut=kind.cut))
    except BodyError as error:
        fault = FetchFault("size" if error.kind == "size" else "encoding", str(error), url)
        return replace(answer, fault=fault)


def broken(error: Exception, url: str) -> FetchedResponse:
    """Convert a transport error into a failed response."""
    import httpx  # noqa: PLC0415 - slow to load

    certificate = find_cause(error, ssl.SSLCertVerificationError)
    if certificate is not None:
        reason = getattr(certificate, "verify_message", None) or certificate
        return failed("certificate", f"the certificate is not valid: {reason}", url)
    secure = find_cause(error, ssl.SSLError)
    if secure is not None:
        return failed("certificate", f"the TLS handshake failed: {getattr(secure, 'reason', None) or secure}", url)
    if isinstance(error, httpx.RemoteProtocolError):
        return failed("protocol", f"the response is incomplete or not HTTP: {brief(str(error))}", url)
    if find_cause(error, ConnectionRefusedError) is not None:
        return failed("connection", "connection refused", url)
    system = find_cause(error, OSError)
    said = (system.strerror if system else None) or str(error) or type(error).__name__
    return failed("connection", f"connection failed: {said[:200]}", url)


def failed(kind: FaultKind, message: str, url: str) -> FetchedResponse:
    """Build a response that reports a fault."""
    return FetchedResponse(0, {}, fault=FetchFault(kind, message, url))
