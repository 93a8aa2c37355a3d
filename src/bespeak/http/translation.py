"""Between the requests of HTTP and those of the exchange: which verb is meant, on which path, with which headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from bespeak import status
from bespeak.contract.http_route import split_verb
from bespeak.exchange.headers import MEDIA_AGTP, MEDIA_JSON, METHOD_GRAMMAR, HeaderBlock
from bespeak.exchange.messages import Connection, Malformed, Request, Response
from bespeak.http.asgi import Headers, Scope
from bespeak.http.problem import MEDIA_PROBLEM, problem

AGIS_METHOD: Final = "x-agis-method"
AGIS_GRAMMAR: Final = "x-agis-grammar"
AGIS_NAMESPACE: Final = "x-agis-namespace"

_LISTS: Final = frozenset({"accept", "accept-encoding", "accept-language", "cache-control", "if-none-match", "via"})
"""Headers that may stand several times, because each is a list; a second one of any other is refused."""

_CHALLENGE: Final = (b"www-authenticate", b"Bearer")


def local_path(scope: Scope) -> str:
    """The path below where the face is mounted, percent-encoding untouched."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw else quote(scope["path"], safe="/:@!$&'()*+,;=~-._")
    root = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :] or "/"
    return path


def read_headers(pairs: Headers, most: int) -> dict[str, str] | Malformed:
    """The headers by name. What AGTP takes once must not stand twice: two readers would believe two things."""
    if len(pairs) > most:
        return Malformed(status.BAD_REQUEST, "head-too-large", f"The request has more than {most} headers.")
    headers: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        if key in headers:
            if key not in _LISTS:
                return Malformed(status.BAD_REQUEST, "invalid-header", f"The header {key[:80]} stands twice.")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    return headers


def meant(path: str, headers: Mapping[str, str]) -> tuple[str, str] | None:
    """The path and the method in AGTP's terms: by X-AGIS-Method, else by the verb behind the path; None for neither."""
    named = headers.get(AGIS_METHOD)
    # AGIS 4: methods are compared without regard to capitals.
    return (path, named.strip().upper()) if named is not None else split_verb(path)


def to_request(
    found: tuple[str, str], query: str, headers: dict[str, str], body: bytes, connection: Connection
) -> Request:
    """A request for a path and a method as the handler sees it.

    On the web a `+` in a query is a space, and the header of AGIS's grammar has a prefix.
    """
    path, method = found
    if AGIS_GRAMMAR in headers:
        headers.setdefault(METHOD_GRAMMAR, headers[AGIS_GRAMMAR])
    return Request(method, path, query.replace("+", "%20") if "+" in query else query, headers, body, connection)


def encode_block(block: HeaderBlock) -> Headers:
    """A block of headers as HTTP sends it."""
    return [_encode(name, value) for name, value in block.pairs]


def to_http(response: Response, block: Headers) -> tuple[int, Headers, bytes]:
    """Status, headers and body of an answer; `block` is that of the response, encoded."""
    number = response.status
    headers = [*block, (b"agtp-status", b"%d" % number)]
    body = response.body
    if response.headers:
        headers += [_encode(name, value) for name, value in response.headers]
    if status.is_success(number):
        number = status.to_http(number)
    elif number != status.NOT_MODIFIED:
        number, body = problem(number, body)
        headers = [pair for pair in headers if pair[0] != b"content-type"]
        headers.append((b"content-type", MEDIA_PROBLEM.encode()))
        if number == status.UNAUTHORIZED:
            headers.append(_CHALLENGE)
    headers.append((b"content-length", b"%d" % len(body)))
    return number, headers, body


def _encode(name: str, value: str) -> tuple[bytes, bytes]:
    if value == MEDIA_AGTP:
        value = MEDIA_JSON
    return name.lower().encode("latin-1"), value.encode("latin-1", "replace")
