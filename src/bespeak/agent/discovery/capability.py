"""Operation of a service on the web, in one form for all kinds of documents: what to send, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from bespeak.contract.handler import QUERY_METHODS
from bespeak.protocol.address_guard import AddressFault, Origin, WebAddress, resolve_address
from bespeak.protocol.exchange.headers import is_header_name
from bespeak.text.diagnostics.diagnostic import brief

Place = Literal["path", "query", "header", "cookie", "body", "whole-body"]

PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_.-]{1,200})\}")
_COLON: Final = re.compile(r"(?<=/):([A-Za-z_][A-Za-z0-9_]{0,199})(?=[/?]|$)")
_MARK: Final = "bespeak-placeholder-"
_FRAMING: Final = frozenset(  # Headers for framing and routing, which a document must not set.
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "content-type", "expect"}
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Place of one member of the input in the request."""

    place: Place
    name: str  # name of the member at that place
    style: str = "repeat"  # serialisation of several values in a query, one of LIST_STYLES


@dataclass(frozen=True, slots=True)
class CredentialPlace:
    """Place where a service expects a credential: `bearer`, `basic`, or a key in a header, the query or a cookie."""

    kind: Literal["none", "bearer", "basic", "header", "query", "cookie", "unknown"]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Operation that can be called over HTTP."""

    id: str
    method: str
    path: str
    """Path with its {parameters}, or the absolute address at another host; identifies the capability besides its id."""
    origin: Origin
    target: str  # path and query at the origin, with {parameters}
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    returns: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)  # text of the document about each parameter
    placements: Mapping[str, Placement] = field(default_factory=dict)
    """Placements of members that do not follow the default of the method."""
    media_type: str = "application/json"  # media type of the body
    form_styles: Mapping[str, str] = field(default_factory=dict)
    """Serialisation of several values of a field of a form, one of LIST_STYLES; `repeat` for the others."""
    credentials: tuple[CredentialPlace, ...] = ()
    """Places for a credential; the first supported one is used. Empty if the document names none."""
    deprecated: bool = False

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Parameters in the target, in order."""
        return tuple(dict.fromkeys(PLACEHOLDER.findall(self.target)))

    @property
    def is_idempotent(self) -> bool:
        """True if the method is idempotent (RFC 9110 9.2.2)."""
        return self.method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")

    def place_of(self, name: str) -> Placement:
        if name in self.placements:
            return self.placements[name]
        if name in self.placeholders:
            return Placement("path", name)
        return Placement("query" if self.method in QUERY_METHODS else "body", name)


def resolve_template(text: str, base: WebAddress, *, insecure: bool = False) -> tuple[Origin, str] | AddressFault:
    """Resolve an endpoint to its origin and target: `/x/:id`, `/x/{id}` or an absolute address."""
    marked = in_braces(text) if text.startswith("/") else _colons_behind_host(text)
    names = PLACEHOLDER.findall(marked)
    # Braces are not valid in an address, so parameters are masked while it is resolved.
    for index, name in enumerate(names):
        marked = marked.replace(f"{{{name}}}", f"{_MARK}{index}-")
    address = resolve_address(marked, base, insecure=insecure)
    if isinstance(address, AddressFault):
        return address
    if _MARK in address.origin.host:
        return AddressFault("address", "the host depends on the input")
    target = address.target
    for index, name in enumerate(names):
        target = target.replace(f"{_MARK}{index}-", f"{{{name}}}")
    if "{" in PLACEHOLDER.sub("", target):
        return AddressFault("address", f"{brief(text)} has a parameter with an invalid name")
    return address.origin, target


def in_braces(path: str) -> str:
    """Convert `/x/:id` to `/x/{id}`. `/:import` alone is a method at the path `/`, as services of bespeak write it."""
    return path if path.count("/") == 1 and path.startswith("/:") else _COLON.sub(r"{\1}", path)


def may_name_header(name: str) -> bool:
    """Return True if a document may set a header of this name."""
    return is_header_name(name) and name.lower() not in _FRAMING


def input_schema(
    properties: Mapping[str, Any], required: Iterable[str], placeholders: Iterable[str], *, closed: bool
) -> dict[str, Any]:
    """Build the schema of an input: path parameters are required, and strings or numbers unless declared otherwise."""
    whole = dict(properties)
    needed = dict.fromkeys(required)
    for name in placeholders:
        whole.setdefault(name, {"type": ["string", "integer"]})
        needed[name] = None
    schema: dict[str, Any] = {"type": "object", "properties": whole}
    if needed:
        schema["required"] = list(needed)
    if closed:
        schema["additionalProperties"] = False
    return schema


def _colons_behind_host(text: str) -> str:
    head, slashes, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{head}://{host}" + in_braces(f"/{path}") if slashes and slash else text
