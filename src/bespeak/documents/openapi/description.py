"""An OpenAPI description as the rest of bespeak sees it: one form for 2.0, 3.0 and 3.1, every reference followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Place = Literal["path", "query", "header", "cookie"]

_LIST_STYLES: Final = {"spaceDelimited": "space", "pipeDelimited": "pipe", "deepObject": "deep"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an operation."""

    name: str
    place: Place
    required: bool
    schema: Mapping[str, Any]
    """JSON Schema 2020-12, complete in itself: what is recursive stands in its own `$defs`."""
    description: str = ""
    style: str = "form"
    explode: bool = True
    is_json: bool = False
    """Whether the value is sent as JSON text (`content: application/json`)."""
    deprecated: bool = False

    @property
    def list_style(self) -> str:
        """How several values are written in a query, one of LIST_STYLES; `repeat` also where there is only one."""
        if self.is_json:
            return "json"
        if self.style in _LIST_STYLES:
            return _LIST_STYLES[self.style]
        one = self.schema.get("type") in ("string", "integer", "number", "boolean")
        return "repeat" if self.explode or one else "comma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The request body, in the one media type that is sent."""

    media_type: str
    required: bool
    schema: Mapping[str, Any]
    description: str = ""
    other_types: tuple[str, ...] = ()
    """Media types that were offered beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedResponse:
    """One documented response."""

    status: str
    """`200`, `4XX` or `default`."""
    description: str = ""
    media_type: str | None = None
    """None where there is no body."""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """One way an upstream wants callers to prove themselves."""

    name: str
    kind: str
    """`apiKey`, `http`, `oauth2`, `openIdConnect` or `mutualTLS`."""
    place: str = ""
    """Of an apiKey: `header`, `query` or `cookie`."""
    parameter: str = ""
    """Of an apiKey: the name of the header, query parameter or cookie."""
    scheme: str = ""
    """Of http: `bearer`, `basic`, ..."""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the upstream."""

    method: str
    """In capitals."""
    path: str
    """As described, `/pets/{petId}`, without the base path of the server."""
    base: str
    """The https:// or http:// address the path is appended to, without a slash at its end; empty when none is known."""
    pointer: str
    """Where it stands in the file."""
    operation_id: str = ""
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answers: tuple[DocumentedResponse, ...] = ()
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Alternatives, each naming the schemes it needs together with their scopes; an empty one means no credential."""
    deprecated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A whole description."""

    openapi: str
    """The version it was written in."""
    title: str = ""
    version: str = ""
    description: str = ""
    contact: str = ""
    """An e-mail address or a URL."""
    source: str = ""
    """The file or address it was read from."""
    operations: tuple[Operation, ...] = ()
    schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)
