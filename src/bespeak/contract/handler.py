"""The three handler bindings of AGTP-API 12 as a tagged union. Only `type` ever leaves the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

COMPOSITION_FAILED: Final = "composition_failed"
"""Error that every composition endpoint declares (AGTP-API 12.1)."""

UPSTREAM_ERRORS: Final = (
    "upstream_timeout",
    "upstream_connection_error",
    "upstream_malformed_response",
    "upstream_authentication_failed",
    "upstream_error",
)
"""Errors that every external_service endpoint declares (AGTP-API 12.3, table 2)."""

UPSTREAM_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""Methods that carry the input in the query unless `body` is set: a body has no meaning there (RFC 9110 9.3)."""

BODY_FORMS: Final = ("json", "form", "multipart", "none")
"""Encodings of a body."""

LIST_STYLES: Final = ("repeat", "comma", "space", "pipe", "deep", "json")
"""Notations for several values in a query or form: `a=1&a=2`, `a=1,2`, `a=1%202`, `a=1|2`, `a[b]=1`, or JSON text."""

ANSWER_FORMS: Final = ("json", "text", "none")
"""Forms of an upstream's answer: JSON as in the draft, text that becomes `output_field`, or ignored."""

_STATUS: Final = re.compile(r"[1-5][0-9]{2}|[45]XX")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")

_RESERVED_HEADERS: Final = frozenset(
    {
        *("authorization", "cookie", "host", "agent-id", "authority-scope", "owner-id"),
        *("accept-encoding", "connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("forwarded", "via", "x-real-ip"),
    }
)
"""Headers that identify the caller or frame a message; an input field must not fill them."""

_RESERVED_PREFIXES: Final = ("agtp-", "content-", "proxy-", "sec-", "x-forwarded-")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredFunction:
    """A Python callable: a dotted path in a file, or the object itself if the contract is written in Python."""

    type: ClassVar[str] = "registered_function"
    function: str
    target: Callable[..., Any] | None = None
    blocking: bool = False
    """True to run the function in a thread, because it blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A named recipe over other endpoints of the same server."""

    type: ClassVar[str] = "composition"
    recipe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalService:
    """An HTTPS upstream behind a facade that enforces the contract.

    Each input field goes to one place: into the path if the URL has `{field}`, else where `query`, `header_fields`,
    `cookie_fields` or `body_field` name it, else into the body, or the query if there is no body. All settings except
    the transforms use the contract's field names.
    """

    type: ClassVar[str] = "external_service"
    url: str
    """HTTPS URL, with `{field}` for values in the path, also as a part of a segment."""
    method: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request; `${VAR}` in a value is read from the environment when the server starts."""
    query_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Query parameters with this server's credentials, `{"api_key": "${VAR}"}`."""
    cookie_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Cookies with this server's credentials, `{"session": "${VAR}"}`."""
    input_transform: Mapping[str, str] = field(default_factory=dict)
    """Contract field names and the upstream's, in the query, a form or a body."""
    output_transform: Mapping[str, str] = field(default_factory=dict)
    """Contract field names and the upstream's, in an answer."""
    error_map: Mapping[str, str] = field(default_factory=dict)
    """Errors by status: `404` first, then `4XX` or `5XX`, which extend the draft."""
    timeout_seconds: float = 30.0
    query: tuple[str, ...] = ()
    """Fields that go into the query whatever the method."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Notation of lists and objects in the query or a form, one of LIST_STYLES by field. The default is `repeat` in
    a form and for fields named in `query`, and `json` for fields in the query because there is no body.
    """
    header_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields that become headers, with the header names. Several values are joined by commas."""
    cookie_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields that become cookies, with the cookie names."""
    body: str | None = None
    """Encoding of the remaining fields, one of BODY_FORMS; None to follow the method."""
    body_field: str | None = None
    """Field whose value is the JSON body, for upstreams whose body is not an object. The remaining fields then go
    into the query.
    """
    files: tuple[str, ...] = ()
    """File fields of a multipart body, given as base64."""
    answer: str = "json"
    """Form of the upstream's answer, one of ANSWER_FORMS."""
    output_field: str | None = None
    """Output field for an answer that is text, or JSON but not an object."""

    @property
    def body_form(self) -> str:
        """Encoding of the body, one of BODY_FORMS, declared or derived."""
        return self.body or ("none" if self.method in QUERY_METHODS and self.body_field is None else "json")

    @property
    def path_fields(self) -> tuple[str, ...]:
        """Fields in the URL, each once."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.url)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueHandler:
    """The binding of another server's endpoint: a manifest gives only its type (AGTP-API 8.9)."""

    type: str


HandlerBinding = RegisteredFunction | Composition | ExternalService | OpaqueHandler

HANDLER_TYPES: Final = (RegisteredFunction.type, Composition.type, ExternalService.type)
"""Values of `handler.type` (AGTP-API 12)."""


def is_dotted_path(text: str) -> bool:
    """Return True if the text names a module and a function in it (AGTP-API 12.2)."""
    names = text.split(".")
    return len(names) > 1 and all(name.isidentifier() for name in names)


def is_upstream_status(text: str) -> bool:
    """Return True if the text is an HTTP status code, `4XX` or `5XX`, as the keys of `error_map` are."""
    return _STATUS.fullmatch(text) is not None


def fill_placeholders(template: str, value: Callable[[str], str]) -> str:
    """Replace each `{field}` of a URL by its value."""
    return _PLACEHOLDER.sub(lambda found: value(found.group(1)), template)


def is_reserved_header(name: str) -> bool:
    """Return True if no field of an input may fill this header."""
    return name.lower() in _RESERVED_HEADERS or name.lower().startswith(_RESERVED_PREFIXES)
