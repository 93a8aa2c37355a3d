"""The three handler bindings of AGTP-API 12 as a tagged union. Only `type` ever leaves the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

COMPOSITION_FAILED: Final = "composition_failed"
"""AGTP-API 12.1: the error every composition endpoint declares."""

UPSTREAM_ERRORS: Final = (
    "upstream_timeout",
    "upstream_connection_error",
    "upstream_malformed_response",
    "upstream_authentication_failed",
    "upstream_error",
)
"""AGTP-API 12.3, table 2: the errors every external_service endpoint declares."""

UPSTREAM_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""These carry the input in the query unless `body` says otherwise: a body has no meaning there (RFC 9110 9.3)."""

BODY_FORMS: Final = ("json", "form", "multipart", "none")
"""How a body is encoded."""

LIST_STYLES: Final = ("repeat", "comma", "space", "pipe", "deep", "json")
"""How a query or a form says several values: `a=1&a=2`, `a=1,2`, `a=1%202`, `a=1|2`, `a[b]=1`, or as JSON text."""

ANSWER_FORMS: Final = ("json", "text", "none")
"""JSON as the draft has it, a text that becomes `output_field`, or nothing that is looked at."""

_STATUS: Final = re.compile(r"[1-5][0-9]{2}|[45]XX")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")

_RESERVED_HEADERS: Final = frozenset(
    {
        *("authorization", "cookie", "host", "agent-id", "authority-scope", "owner-id"),
        *("accept-encoding", "connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("forwarded", "via", "x-real-ip"),
    }
)
"""Headers that say who asks or where a message ends, so that no field of an input fills them."""

_RESERVED_PREFIXES: Final = ("agtp-", "content-", "proxy-", "sec-", "x-forwarded-")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredFunction:
    """A Python callable: by dotted path in a file, by itself when the contract is written in Python."""

    type: ClassVar[str] = "registered_function"
    function: str
    target: Callable[..., Any] | None = None
    blocking: bool = False
    """Run in a thread, because the function waits without `await`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A named recipe over other endpoints of the same server."""

    type: ClassVar[str] = "composition"
    recipe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalService:
    """An HTTPS upstream behind a contract-keeping facade.

    Each field of the input goes to one place: into the path if the URL has `{field}`, else where `query`,
    `header_fields`, `cookie_fields` or `body_field` name it, else into the body, or the query if there is no body.
    All but the transforms name fields as the contract does.
    """

    type: ClassVar[str] = "external_service"
    url: str
    """https://, with `{field}` where a value stands in the path, also as a part of a segment."""
    method: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request; `${VAR}` in a value is taken from the environment when the server starts."""
    query_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Parameters of the query that prove who this server is, `{"api_key": "${VAR}"}`."""
    cookie_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Cookies that prove who this server is, `{"session": "${VAR}"}`."""
    input_transform: Mapping[str, str] = field(default_factory=dict)
    """The contract's name of a field and the upstream's, in the query, a form or a body."""
    output_transform: Mapping[str, str] = field(default_factory=dict)
    """The contract's name of a field and the upstream's, in an answer."""
    error_map: Mapping[str, str] = field(default_factory=dict)
    """The error for a status: `404` first, then `4XX` or `5XX`, which are beyond the draft."""
    timeout_seconds: float = 30.0
    query: tuple[str, ...] = ()
    """Fields that go into the query whatever the method."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """How a list or an object in the query or a form is written, one of LIST_STYLES by field. Without an entry it is
    `repeat` in a form and for what `query` names, and `json` for what is in the query because there is no body."""
    header_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields that become headers, each with the name of its header. Several values are joined by commas."""
    cookie_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields that become cookies, each with the name of its cookie."""
    body: str | None = None
    """How the fields that have no other place are sent, one of BODY_FORMS; None for what the method suggests."""
    body_field: str | None = None
    """The one field whose value is the JSON body, for upstreams whose body is no object. Fields that have no other
    place then go into the query."""
    files: tuple[str, ...] = ()
    """Fields of a multipart body that are files, given as base64."""
    answer: str = "json"
    """What the upstream answers with, one of ANSWER_FORMS."""
    output_field: str | None = None
    """The field of the output that a text, or JSON which is no object, becomes."""

    @property
    def body_form(self) -> str:
        """How a body is encoded, one of BODY_FORMS, whether it was said or not."""
        return self.body or ("none" if self.method in QUERY_METHODS and self.body_field is None else "json")

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields that stand in the URL, each once."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(self.url)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueHandler:
    """The binding of somebody else's endpoint: a manifest says its kind and nothing more (AGTP-API 8.9)."""

    type: str


HandlerBinding = RegisteredFunction | Composition | ExternalService | OpaqueHandler

HANDLER_TYPES: Final = (RegisteredFunction.type, Composition.type, ExternalService.type)
"""AGTP-API 12: what `handler.type` may be."""


def is_dotted_path(text: str) -> bool:
    """Whether the text names a module and a function in it (AGTP-API 12.2)."""
    names = text.split(".")
    return len(names) > 1 and all(name.isidentifier() for name in names)


def is_upstream_status(text: str) -> bool:
    """Whether the text is an HTTP status code, or `4XX` or `5XX`, as the keys of `error_map` are."""
    return _STATUS.fullmatch(text) is not None


def fill_placeholders(template: str, value: Callable[[str], str]) -> str:
    """A URL with the value of a field in the place of each `{field}`."""
    return _PLACEHOLDER.sub(lambda found: value(found.group(1)), template)


def is_reserved_header(name: str) -> bool:
    """Return True if no field of an input may fill this header."""
    return name.lower() in _RESERVED_HEADERS or name.lower().startswith(_RESERVED_PREFIXES)
