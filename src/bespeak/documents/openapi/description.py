"""An OpenAPI description in one form for 2.0, 3.0 and 3.1, with every reference resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from bespeak.contract.rate import Rate

Place = Literal["path", "query", "header", "cookie"]

MOST_BYTES: Final = 40_000_000
"""Maximum size of a description."""
_LIST_STYLES: Final = {"spaceDelimited": "space", "pipeDelimited": "pipe"}


def list_style(style: str, schema: Mapping[str, Any], *, explode: bool) -> str:
    """Return the notation of several values, one of LIST_STYLES; `repeat` for a single value."""
    if style == "deepObject":
        return "deep"
    one = schema.get("type") in ("string", "integer", "number", "boolean")
    return "repeat" if explode or one else _LIST_STYLES.get(style, "comma")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    place: Place
    required: bool
    schema: Mapping[str, Any]
    """JSON Schema 2020-12, self-contained: recursive parts are in its own `$defs`."""
    description: str = ""
    style: str = "form"
    explode: bool = True
    is_json: bool = False
    """True if the value is sent as JSON text (`content: application/json`)."""
    deprecated: bool = False
    reserved: bool = False
    """True if reserved characters are not percent-encoded."""

    @property
    def list_style(self) -> str:
        """Notation of several values in a query, one of LIST_STYLES; `repeat` for a single value."""
        return "json" if self.is_json else list_style(self.style, self.schema, explode=self.explode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one field of a form or of a multipart body is written."""

    style: str = ""
    """Style of its value as for a query parameter; empty if the description names none."""
    explode: bool = True
    reserved: bool = False
    """True if reserved characters are not percent-encoded."""
    content_types: tuple[str, ...] = ()
    """Media types of its value, the one to send first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The request body, in the one media type that is sent."""

    media_type: str
    required: bool
    schema: Mapping[str, Any]
    description: str = ""
    other_types: tuple[str, ...] = ()
    """Other media types that the description offers."""
    encoding: Mapping[str, Encoding] = field(default_factory=dict)
    """Encodings of the fields of a form, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedResponse:
    """One documented response."""

    status: str
    """`200`, `4XX` or `default`."""
    description: str = ""
    media_type: str | None = None
    """Media type; None if there is no body."""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """One security scheme of an upstream."""

    name: str
    kind: str
    """`apiKey`, `http`, `oauth2`, `openIdConnect` or `mutualTLS`."""
    place: str = ""
    """Place of an apiKey: `header`, `query` or `cookie`."""
    parameter: str = ""
    """Name of the header, query parameter or cookie of an apiKey."""
    scheme: str = ""
    """Scheme of `http`: `bearer`, `basic`, ..."""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the upstream."""

    method: str
    """HTTP method in capitals."""
    path: str
    """Path as described, `/pets/{petId}`, without the base path of the server."""
    base: str
    """Base address (https:// or http://) of the path, without a trailing slash; empty if unknown."""
    pointer: str
    """Pointer of the operation in the file."""
    operation_id: str = ""
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answers: tuple[DocumentedResponse, ...] = ()
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Alternatives, each with the schemes it combines and their scopes; an empty one means no credential."""
    deprecated: bool = False
    rate: Rate | None = None
    """Limit of calls that the upstream states for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A whole description."""

    openapi: str
    """Version of OpenAPI it was written in."""
    title: str = ""
    version: str = ""
    description: str = ""
    contact: str = ""
    """E-mail address or URL."""
    source: str = ""
    """File or address it was read from."""
    rate: Rate | None = None
    """Limit of calls that the upstream states for all operations."""
    operations: tuple[Operation, ...] = ()
    schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)
