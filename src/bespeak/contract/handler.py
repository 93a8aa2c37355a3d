"""The handler bindings of AGTP-API 12, of which only `type` leaves the server, and the refusal of a handler."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import msgspec

from bespeak.errors import BespeakError
from bespeak.protocol.address import Address, split_url
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.settings import Setting, setting
from bespeak.text.reading.table import Table

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")  # a value that is read from the environment at the start
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _read_names(block: Table, key: str) -> tuple[str, ...]:
    """Read the names of variables. A value would be a secret in a file."""
    names = dict.fromkeys(block.texts(key))
    for name in names:
        if _NAME.fullmatch(name) is None:
            advice = "Write only the name, and set the variable where the server starts."
            block.error(WRONG_VALUE, key, f"each value of `{key}` must be the name of a variable", advice)
    return tuple(name for name in names if _NAME.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """The tool, the prompt or the resource of an MCP server that an endpoint calls, instead of a URL and a method."""

    tool: str = setting("", "The name of the tool, as the server has it.")
    prompt: str = setting("", "The name of a prompt, in place of a tool.")
    resource: str = setting("", "The URI of a resource, in place of a tool.")
    input_digest: str = setting(
        "", "The digest of the tool's input schema at the time of the import. If it has changed, calls are checked."
    )
    command: str = setting("", "The program that speaks MCP over its standard input and output.")
    args: tuple[str, ...] = setting((), "The arguments of the program. `${VAR}` is read from the environment.")
    env: tuple[str, ...] = setting(
        (), "The names of the environment variables that the program receives, beside PATH and HOME.", read=_read_names
    )
    folder: str = setting(
        "", "The working folder of the program. Without it, the folder that the server was started in."
    )
    url: str = setting("", "The address of a server that speaks streamable HTTP: https://, or http:// on this machine.")
    headers: Mapping[str, str] = setting(
        {}, "Headers of every request to `url`. `${VAR}` is read from the environment.", shown=False
    )
    token_file: str = setting("", "The file that holds a bearer token for `url`. It is read for each connection.")

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the server: endpoints with the same key share one process or one session."""
        headers = tuple(sorted(self.headers.items()))
        return (self.command, self.args, self.env, self.folder, self.url, headers, self.token_file)

    @property
    def named(self) -> str:
        kinds = {"tool": self.tool, "prompt": self.prompt, "resource": self.resource}
        return next((f"{kind} {name}" for kind, name in kinds.items() if name), "tool")

    @property
    def templates(self) -> Iterator[tuple[str, str]]:
        """Values that may contain `${VAR}`, each with its pointer from the table."""
        yield from ((f"/args/{index}", value) for index, value in enumerate(self.args))
        yield "/url", self.url
        yield from ((f"/headers/{name}", value) for name, value in self.headers.items())

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that must be set, each once."""
        found = (name for _, template in self.templates for name in VARIABLE.findall(template))
        return tuple(dict.fromkeys((*self.env, *found)))


def schema_digest(schema: Mapping[str, Any]) -> str:
    """Return a short digest of a schema, the same for every order of its keys."""
    return hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest()[:16]


def is_usable_address(url: str) -> bool:
    """Return True for https://, which AGTP-API 12.3 demands, and for http:// on this machine."""
    try:
        parts = split_url(url)
        if not parts.hostname or "@" in parts.netloc or (parts.port is not None and parts.port == 0):
            return False
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and Address(parts.hostname, 0).is_loopback)


COMPOSITION_FAILED: Final = "composition_failed"  # error that every composition endpoint declares (AGTP-API 12.1)
UPSTREAM_ERRORS: Final = (
    "upstream_timeout",
    "upstream_connection_error",
    "upstream_malformed_response",
    "upstream_authentication_failed",
    "upstream_error",
)  # errors that every external_service endpoint declares (AGTP-API 12.3, table 2)
TOOL_ERROR: Final = "tool_error"  # error that imported tools of MCP servers declare: the tool itself reports a failure
UPSTREAM_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})  # input in the query (RFC 9110 9.3)
BODY_FORMS: Final = ("json", "form", "multipart", "none")  # encodings of a body
LIST_STYLES: Final = ("repeat", "comma", "space", "pipe", "deep", "json")  # `a=1&a=2`, `1,2`, `1%202`, `1|2`, `a[b]=1`
ANSWER_FORMS: Final = ("json", "text", "none")  # JSON, text that becomes `output_field`, or ignored
_ABSENT: Final[Any] = None
_STATUS: Final = re.compile(r"[1-5][0-9]{2}|[45]XX")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_RESERVED_HEADERS: Final = frozenset(
    {
        *("authorization", "cookie", "host", "agent-id", "authority-scope", "owner-id"),
        *("accept-encoding", "connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("forwarded", "via", "x-real-ip"),
    }
)  # headers that identify the caller or frame a message; an input field must not fill them
_RESERVED_PREFIXES: Final = ("agtp-", "content-", "proxy-", "sec-", "x-forwarded-")


def _read_upstream_method(block: Table, key: str) -> str | None:
    method = block.value(key)
    if isinstance(method, str) and method.upper() in UPSTREAM_METHODS:
        return method.upper()
    block.choice(key, UPSTREAM_METHODS)
    return method if isinstance(method, str) else None


def _read_timeout(block: Table, key: str) -> float | None:
    seconds = block.positive(key)
    return None if seconds is None else float(seconds)


def _read_error_map(block: Table, key: str) -> dict[str, str]:
    error_map = block.text_map(key)
    for status in error_map:
        if not is_upstream_status(status):
            message = f"each key of `{key}` must be an HTTP status; got {brief(status)}"
            advice = 'Write three digits, "404", or "4XX" or "5XX" for all others of their kind.'
            block.findings.error(WRONG_VALUE, message, block.pointer(key), advice)
    return error_map


def _read_lists(block: Table, key: str) -> dict[str, str]:
    styles = block.table(key)
    if styles is None:
        return {}
    chosen = {name: styles.choice(name, LIST_STYLES) for name in styles.data}
    return {name: style for name, style in chosen.items() if style is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredFunction:
    """A Python callable: a dotted path in a file, or the object itself if the contract is written in Python."""

    type: ClassVar[str] = "registered_function"
    function: str = setting(
        "",
        "The dotted path of a function, imported when the server starts.",
        required=True,
        old="reference",
        advice='A dotted path, function = "module.function".',
    )
    target: Callable[..., Any] | None = None
    overrides: Mapping[Any, Callable[..., Any]] | None = field(default=None, compare=False, repr=False)
    """Replacements of providers, as tests make them in the App; None for a function of a file."""
    inline: bool = setting(False, "Run a `def` in the event loop and not in a thread, because it is quick.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A named recipe over other endpoints of the same server."""

    type: ClassVar[str] = "composition"
    recipe: str = setting("", "The name of a recipe.", required=True, old="reference", advice="The name of a recipe.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalService:
    """An HTTPS upstream behind a facade that enforces the contract.

    Each input field goes to one place: into the path if the URL has `{field}`, else where `query`, `header_fields`,
    `cookie_fields` or `body_field` name it, else into the body, or the query if there is no body. All settings except
    the transforms use the contract's field names.
    """

    type: ClassVar[str] = "external_service"
    url: str = setting(
        "",
        "The https:// URL of the upstream, with `{field}` for values in the path, also as a part of a segment.",
        required=True,
        old="reference",
        advice="The https:// URL of the upstream.",
    )
    method: str = setting(
        "",
        "The HTTP method of the upstream.",
        required=True,
        choices=UPSTREAM_METHODS,
        read=_read_upstream_method,
        advice=f"The HTTP method of the upstream: one of {', '.join(UPSTREAM_METHODS)}.",
    )
    headers: Mapping[str, str] = setting(
        {}, "Headers of every request; `${VAR}` is read from the environment when the server starts.", shown=False
    )
    query_credentials: Mapping[str, str] = setting(
        {}, "Query parameters with this server's credentials: `api_key = ${VAR}`.", shown=False
    )
    cookie_credentials: Mapping[str, str] = setting(
        {}, "Cookies with this server's credentials: `session = ${VAR}`.", shown=False
    )
    input_transform: Mapping[str, str] = setting(
        {}, "Contract field = the upstream's name for it, in the query, a form or a body.", old="input_map"
    )
    output_transform: Mapping[str, str] = setting(
        {}, "Contract field = the upstream's name for it, in an answer.", old="output_map"
    )
    error_map: Mapping[str, str] = setting(
        {}, "Status of the upstream, `4XX` or `5XX` = a declared error. An exact status wins.", read=_read_error_map
    )
    timeout_seconds: float = setting(30.0, "Seconds an upstream may take.", kind="seconds", read=_read_timeout)
    deferred: bool = setting(False, "True if the upstream need not be reachable when the server starts.")
    query: tuple[str, ...] = setting((), "Fields that go into the query whatever the method.", read=Table.texts)
    lists: Mapping[str, str] = setting(
        {},
        "Field = the notation of lists and objects in the query or a form. Without it: `repeat` in a form and for "
        "fields named in `query`, `json` for fields in the query because there is no body.",
        read=_read_lists,
        values=Setting(meaning="The notation.", choices=LIST_STYLES),
    )
    reserved: tuple[str, ...] = setting(
        (), "Fields in the query or a form whose `:/?@!$'()*,;` are not percent-encoded.", read=Table.texts
    )
    header_fields: Mapping[str, str] = setting(
        {}, "Field = the header that it becomes. Several values are joined by commas."
    )
    cookie_fields: Mapping[str, str] = setting({}, "Field = the cookie that it becomes.")
    body: str | None = setting(
        None, "The encoding of the remaining fields. Without it, the method decides.", choices=BODY_FORMS
    )
    body_field: str | None = setting(
        None, "The field whose value is the JSON body, for upstreams whose body is not an object."
    )
    files: tuple[str, ...] = setting((), "File fields of a multipart body, given as base64.", read=Table.texts)
    part_types: Mapping[str, str] = setting({}, "Field = the media type of its part in a multipart body.")
    answer: str = setting("json", "The form of the upstream's answer.", choices=ANSWER_FORMS)
    output_field: str | None = setting(None, "The output field for an answer that is text, or JSON but not an object.")

    @property
    def body_form(self) -> str:
        """Encoding of the body, one of BODY_FORMS, declared or derived."""
        return self.body or ("none" if self.method in QUERY_METHODS and self.body_field is None else "json")

    @property
    def path_fields(self) -> tuple[str, ...]:
        return placeholders(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server behind a facade that enforces the contract: arguments in, structured content out."""

    type: ClassVar[str] = ExternalService.type
    mcp: McpServer = setting(
        _ABSENT, "The tool of an MCP server, instead of url and method.", kind="table", of=McpServer, required=True
    )
    timeout_seconds: float = setting(30.0, "Seconds a call may take.", kind="seconds", read=_read_timeout)
    deferred: bool = setting(False, "True if the server need not be reachable when this server starts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueHandler:
    """The binding of another server's endpoint: a manifest gives only its type (AGTP-API 8.9)."""

    type: str


HandlerBinding = RegisteredFunction | Composition | ExternalService | McpTool | OpaqueHandler
HANDLER_TYPES: Final = (RegisteredFunction.type, Composition.type, ExternalService.type)
"""Values of `handler.type` (AGTP-API 12)."""


def is_dotted_path(text: str) -> bool:
    """Return True if the text names a module and a function in it (AGTP-API 12.2)."""
    names = text.split(".")
    return len(names) > 1 and all(name.isidentifier() for name in names)


def is_upstream_status(text: str) -> bool:
    """Return True if the text is an HTTP status code, `4XX` or `5XX`, as the keys of `error_map` are."""
    return _STATUS.fullmatch(text) is not None


def placeholders(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


def fill_placeholders(template: str, value: Callable[[str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: value(found.group(1)), template)


def is_reserved_header(name: str) -> bool:
    """Return True if no field of an input may fill this header."""
    return name.lower() in _RESERVED_HEADERS or name.lower().startswith(_RESERVED_PREFIXES)


@dataclass(frozen=True, slots=True)
class Body:
    """Mark a parameter that is the whole input: `order: Annotated[Order, Body()]`.

    The fields of its type are the fields of the input. Other parameters, such as those of the path, are added to them.
    """


class Refusal(BespeakError):
    """Raised by a handler to answer 422 with a declared error. Keyword arguments become `error.details`."""

    def __init__(self, name: str, message: str = "", /, **details: Any) -> None:
        self.name = name
        self.message = message
        self.details = details
        super().__init__(f"{name}: {message}" if message else name)


class Needs:
    """Marks a parameter that a provider fills and not the caller: `Annotated[Session, Needs(open_session)]`.

    A provider is a function, or a generator that cleans up after its `yield`, async or not. It may take the Context and
    `Needs` of its own. It is called once per call of the handler; with `cached=False` once per parameter.
    """

    __slots__ = ("cached", "provider")

    def __init__(self, provider: Callable[..., Any], *, cached: bool = True) -> None:
        self.provider = provider
        self.cached = cached
