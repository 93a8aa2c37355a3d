"""An OpenAPI description in one form for 2.0, 3.0 and 3.1, with every reference resolved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final, Literal

from bespeak.contract.limits import Rate
from bespeak.protocol.exchange.headers import FORM, essence

Place = Literal["path", "query", "header", "cookie"]

MOST_BYTES: Final = 40_000_000  # maximum size of a description with its files; the largest public ones have 12 MB
_LIST_STYLES: Final = {"spaceDelimited": "space", "pipeDelimited": "pipe"}


def list_style(style: str, schema: Mapping[str, Any], *, explode: bool) -> str:
    """Return the notation of several values, one of LIST_STYLES; `repeat` for a single value."""
    if style == "deepObject":
        return "deep"
    one = schema.get("type") in ("string", "integer", "number", "boolean")
    return "repeat" if explode or one else _LIST_STYLES.get(style, "comma")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    place: Place
    required: bool
    schema: Mapping[str, Any]  # JSON Schema 2020-12, self-contained: recursive parts are in its own `$defs`
    description: str = ""
    style: str = "form"
    explode: bool = True
    is_json: bool = False  # True if the value is sent as JSON text (`content: application/json`)
    deprecated: bool = False
    reserved: bool = False  # True if reserved characters are not percent-encoded

    @property
    def list_style(self) -> str:
        """Notation of several values in a query, one of LIST_STYLES; `repeat` for a single value."""
        return "json" if self.is_json else list_style(self.style, self.schema, explode=self.explode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one field of a form or of a multipart body is written."""

    style: str = ""  # style of its value as for a query parameter; empty if the description names none
    explode: bool = True
    reserved: bool = False  # True if reserved characters are not percent-encoded
    content_types: tuple[str, ...] = ()  # media types of its value, the one to send first


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The request body, in the one media type that is sent."""

    media_type: str
    required: bool
    schema: Mapping[str, Any]
    description: str = ""
    other_types: tuple[str, ...] = ()  # other media types that the description offers
    encoding: Mapping[str, Encoding] = field(default_factory=dict)  # encodings of the fields of a form, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedResponse:
    status: str  # `200`, `4XX` or `default`
    description: str = ""
    media_type: str | None = None  # media type; None if there is no body
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    name: str
    kind: str  # `apiKey`, `http`, `oauth2`, `openIdConnect` or `mutualTLS`
    place: str = ""  # place of an apiKey: `header`, `query` or `cookie`
    parameter: str = ""  # name of the header, query parameter or cookie of an apiKey
    scheme: str = ""  # Scheme of `http`: `bearer`, `basic`, ...
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str  # HTTP method in capitals
    path: str  # path as described, `/pets/{petId}`, without the base path of the server
    base: str  # base address (https:// or http://) of the path, without a trailing slash; empty if unknown
    pointer: str  # pointer of the operation in the file
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
    rate: Rate | None = None  # limit of calls that the upstream states for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    openapi: str  # version of OpenAPI it was written in
    title: str = ""
    version: str = ""
    description: str = ""
    contact: str = ""  # E-mail address or URL
    source: str = ""  # file or address it was read from
    rate: Rate | None = None  # limit of calls that the upstream states for all operations
    operations: tuple[Operation, ...] = ()
    schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)


def select_operations(
    description: Description, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Description:
    """Keep the operations whose tag, path or operationId matches `include`; keep all if there is none."""
    wanted, unwanted = ([re.compile(translate(text)) for text in texts] for texts in (include, exclude))
    named = (one for one in description.operations if not wanted or _is_named(one, wanted))
    return replace(description, operations=tuple(one for one in named if not _is_named(one, unwanted)))


def with_server(description: Description, server: str) -> tuple[Description, Counter[str]]:
    """Set the address of all operations, and count the operations of each described address that is replaced."""
    base = server.rstrip("/")
    replaced = Counter(one.base for one in description.operations if one.base and one.base != base)
    operations = tuple(replace(operation, base=base) for operation in description.operations)
    return replace(description, operations=operations), replaced


def _is_named(operation: Operation, patterns: list[re.Pattern[str]]) -> bool:
    names = (operation.path, operation.operation_id, f"{operation.method} {operation.path}", *operation.tags)
    return any(pattern.match(name) for pattern in patterns for name in names if name)


JSON: Final = "application/json"
MULTIPART: Final = "multipart/form-data"
_FORMS: Final = ("json", "json-like", "any", "form", "multipart")  # forms of bodies, the best first


@lru_cache(maxsize=1024)
def media_form(media_type: str) -> str:
    """Return the form of a body: one of _FORMS, `text` or `binary`."""
    kind = essence(media_type)
    if kind == "text/json" or kind.endswith("+json"):
        return "json-like"
    if kind.startswith("text/") or kind.endswith(("xml", "yaml", "javascript")):
        return "text"
    forms = {JSON: "json", FORM: "form", MULTIPART: "multipart", **dict.fromkeys(("*/*", "application/*", "*"), "any")}
    return forms.get(kind, "binary")


def is_json(media_type: str) -> bool:
    return media_form(media_type) in ("json", "json-like")


def sent_type(media_type: str) -> str:
    """Return the type to send: JSON if any type is allowed."""
    return JSON if media_form(media_type) == "any" else media_type.strip()


def preferred(offered: Iterable[str]) -> list[str]:
    """Sort media types, the best first: JSON, forms, then in the given order."""
    ranks = {form: rank for rank, form in enumerate(_FORMS)}
    return sorted(offered, key=lambda media_type: ranks.get(media_form(media_type), len(_FORMS)))


def default_schema(media_type: str) -> dict[str, Any]:
    """Return the schema of a body that is described by its type only; bytes become base64 in a contract."""
    form = media_form(media_type)
    if form in ("form", "multipart"):
        return {"type": "object"}
    text = {"text": {"type": "string"}, "binary": {"type": "string", "contentEncoding": "base64"}}
    return text.get(form, {})
