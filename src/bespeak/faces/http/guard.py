"""Checks in front of an application on the HTTP face that speaks JSON-RPC: Host, Origin, size, and its refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope
from bespeak.faces.http.face import Forbidden, Origins, refusal
from bespeak.faces.http.site import Page
from bespeak.faces.http.translation import condition_of, read_body, read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits

METADATA: Final = "/.well-known/oauth-protected-resource"
"""Path of protected-resource metadata, before the path of the resource (RFC 9728 3.1)."""
_REFUSED: Final = -32000  # JSON-RPC code of a refusal before the application


class Guard:
    """Admits requests to one application, and refuses in the form that its clients expect."""

    def __init__(
        self,
        *,
        origins: Origins,
        limits: Limits = DEFAULT_LIMITS,
        realm: str | None = None,
        metadata: Page | None = None,
        metadata_url: str = "",
    ) -> None:
        """Create a guard; without `realm`, of a server that takes bearer credentials, there are no challenges."""
        self.limits = limits
        self.challenges = realm is not None  # missing authority is answered with a challenge for a bearer credential
        self._origins = origins
        self._metadata = metadata
        self._found = ("resource_metadata", metadata_url) if metadata is not None else ("realm", realm or "")

    async def admit(self, scope: Scope, receive: Receive) -> tuple[Scope, bytes] | HttpResponse:
        """Return the request with its body, or the reply if it does not concern the application."""
        headers = read_headers(scope["headers"], self.limits.headers)
        if isinstance(headers, Malformed):
            return refusal(headers.status, headers.code, headers.message)
        if (forbidden := self.forbid(headers)) is not None:
            return refusal(*forbidden)
        if scope["path"].startswith(METADATA):
            if self._metadata is None or scope["method"] not in ("GET", "HEAD"):
                return refusal(status.NOT_FOUND, "endpoint-not-found", "This server takes no bearer tokens here.")
            return self._metadata.answer(headers)
        body = await read_body(receive, self.limits.body) if scope["method"] == "POST" else b""
        if isinstance(body, Malformed):
            message = f"The body is larger than {self.limits.body} bytes, or incomplete."
            return refusal(status.CONTENT_TOO_LARGE, "content-too-large", message)
        # httptools leaves blanks at the end of values, and applications compare them as they are.
        return {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}, body

    def forbid(self, headers: Mapping[str, str]) -> Forbidden | None:
        return self._origins.check_host(headers) or self._origins.check_origin(headers)

    def refuse(self, asked: Any, refused: Refused, scopes: tuple[str, ...] = ()) -> HttpResponse:
        """Refuse as OAuth clients expect it, with words for the others. `asked` is the id of the JSON-RPC request."""
        number = status.to_http(refused.status, condition_of(refused.details))
        error = {"code": _REFUSED, "message": refused.message, "data": {"code": refused.code, **refused.details}}
        answered = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": answered, "error": error})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers]
        if self.challenges and number in (status.UNAUTHORIZED, status.FORBIDDEN):
            headers.append((b"www-authenticate", self.challenge(number, refused, scopes)))
        return HttpResponse(number, headers, body)

    def challenge(self, number: int, refused: Refused, scopes: tuple[str, ...]) -> bytes:
        """Write the challenge that asks for a token, with these scopes if there are any (RFC 6750 3)."""
        pairs = [self._found]
        # Without a token, there is nothing wrong with it.
        if number == status.FORBIDDEN or refused.code.startswith(("token-", "key-")):
            error = "insufficient_scope" if number == status.FORBIDDEN else "invalid_token"
            pairs += [("error", error), ("error_description", refused.message)]
        if scopes:
            pairs.append(("scope", " ".join(dict.fromkeys(scopes))))
        # Without characters that a quoted string cannot contain.
        plain = [
            (name, "".join(char for char in text if " " <= char <= "~" and char not in '"\\')) for name, text in pairs
        ]
        return b"Bearer " + ", ".join(f'{name}="{text}"' for name, text in plain).encode()


def replayed(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that begins with a body that was read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
