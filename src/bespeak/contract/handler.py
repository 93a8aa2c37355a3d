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

BODY_FORMS: Final = ("json", "form", "multipart", "none")
"""How a body is encoded."""

LIST_STYLES: Final = ("repeat", "comma", "space", "pipe", "deep", "json")
"""How a query says several values: `a=1&a=2`, `a=1,2`, `a=1%202`, `a=1|2`, `a[b]=1`, or as JSON text."""

ANSWER_FORMS: Final = ("json", "text", "none")
"""JSON as the draft has it, a text that becomes `output_field`, or nothing that is looked at."""

_STATUS: Final = re.compile(r"[1-5][0-9]{2}")


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
    """An HTTPS upstream behind a contract-keeping facade."""

    type: ClassVar[str] = "external_service"
    url: str
    method: str
    headers: Mapping[str, str] = field(default_factory=dict)
    input_transform: Mapping[str, str] = field(default_factory=dict)
    output_transform: Mapping[str, str] = field(default_factory=dict)
    error_map: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 30.0
    query: tuple[str, ...] = ()
    """Fields of the input that go into the query whatever the method; GET, HEAD, DELETE and OPTIONS put all there."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """How a list or an object in the query is written, one of LIST_STYLES by field; `repeat` without an entry."""
    header_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of the input that become headers, each with the name of its header."""
    cookie_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of the input that become cookies, each with the name of its cookie."""
    body: str | None = None
    """How the remaining fields are sent, one of BODY_FORMS; None for what the method suggests."""
    body_field: str | None = None
    """The one field that is the body itself, for upstreams whose body is no object."""
    files: tuple[str, ...] = ()
    """Fields of a multipart body that are files, given as base64."""
    answer: str = "json"
    """What the upstream answers with, one of ANSWER_FORMS."""
    output_field: str | None = None
    """The field of the output that an answer which is no object becomes."""


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
    """Whether the text is an HTTP status code, as the keys of `error_map` are."""
    return _STATUS.fullmatch(text) is not None
