"""H7xx: the handler binding is complete and declares the errors it can produce (AGTP-API 12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import (
    COMPOSITION_FAILED,
    UPSTREAM_ERRORS,
    UPSTREAM_METHODS,
    Composition,
    ExternalService,
    McpTool,
    RegisteredFunction,
    is_dotted_path,
    is_upstream_status,
)
from bespeak.protocol.address import split_url
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.source.tree import Change

NOT_RUNNABLE: Final = Rule(
    ("H701", "handler-not-runnable", "MUST", "AGTP-API 13.2"),
    "The server supports the type of the handler.",
    why=(
        "An endpoint without a working handler would fail on every call. A server calls functions, external services "
        "and compositions."
    ),
)
NOT_IMPORTABLE: Final = Rule(
    ("H702", "function-not-importable", "MUST", "AGTP-API 12.2"),
    "The function of a dotted path can be imported.",
    why="Otherwise the mistake would appear at the first call instead of at server start.",
    bad='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.bok_room"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    notation="toml",
)
MODULE: Final = Rule(
    ("H730", "module-not-importable", "MUST", "bespeak"),
    "The module of an app can be imported.",
    why="Its endpoints are known only after the import, so nothing in it was checked. Fix the line of the finding.",
)
SIGNATURE: Final = Rule(
    ("H703", "function-signature", "MUST", "AGTP-API 12.2"),
    "The function accepts the input that its schema describes.",
    why="Input fields are passed by name, so every valid call would fail in the handler.",
    bad=(
        "# input_schema has the properties room_id and nights\n"
        "def book_room(room: str, nights: int) -> dict[str, str]:\n"
        '    return {"reservation_id": reserve(room, nights)}\n'
    ),
    good=(
        "# input_schema has the properties room_id and nights\n"
        "def book_room(room_id: str, nights: int) -> dict[str, str]:\n"
        '    return {"reservation_id": reserve(room_id, nights)}\n'
    ),
    notation="python",
)
UPSTREAM_SETUP: Final = Rule(
    ("H704", "upstream-setup", "MUST", "AGTP-API 12.3"),
    "An upstream can be called as it is described, and every ${VAR} has a value.",
    why="A missing secret or an invalid address would otherwise fail only at the first call.",
    bad=(
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\n'
        'headers = { Authorization = "Bearer ${PMS_TOKN}" }\n'
    ),
    good=(
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\n'
        'headers = { Authorization = "Bearer ${PMS_TOKEN}" }\n'
    ),
    notation="toml",
)
UPSTREAM_UNREACHABLE: Final = Rule(
    ("H707", "upstream-unreachable", "SHOULD", "AGTP-API 13.2"),
    "An upstream can be reached when the server starts, or is marked deferred.",
    why=(
        "A wrong host would otherwise show only at the first call. The server connects to each upstream once and sends "
        "nothing; endpoints whose upstream does not answer are served as deferred."
    ),
    bad='[endpoint.handler]\ntype = "external_service"\nurl = "https://pms.exmaple/rooms"\nmethod = "POST"\n',
    good=(
        '[endpoint.handler]\ntype = "external_service"\nurl = "https://pms.example/rooms"\nmethod = "POST"\n'
        "deferred = true  # it starts after this server\n"
    ),
    notation="toml",
)
NO_HANDLER: Final = Rule(
    ("H705", "endpoint-without-handler", "MUST", "AGTP-API 12"),
    "Every endpoint of a document has a handler.",
    why="An AGIS document describes endpoints without their handlers. An endpoint without a handler is not served.",
    bad=(
        'document = "rooms.agis"  # BOOK /room and CANCEL /room\n\n'
        '[handlers."BOOK /room"]\ntype = "registered_function"\n'
        'function = "rooms.handlers.book_room"\n'
    ),
    good=(
        'document = "rooms.agis"  # BOOK /room and CANCEL /room\n\n'
        '[handlers."BOOK /room"]\ntype = "registered_function"\n'
        'function = "rooms.handlers.book_room"\n\n[handlers."CANCEL /room"]\n'
        'type = "registered_function"\nfunction = "rooms.handlers.cancel_room"\n'
    ),
    notation="toml",
)
OPEN_RESULT: Final = Rule(
    ("H708", "open-result", "SHOULD", "bespeak"),
    "The function declares the type of its results.",
    why=(
        "Only the fields of the return type are sent. Without one, or with Any, a field that is added to a class or a "
        "table later, such as a password hash, reaches every caller."
    ),
    bad=(
        "# the output schema has the property name\n"
        "def find_user(user_id: str):\n"
        "    return load_user(user_id)  # with its password hash\n"
    ),
    good=(
        "# the output schema has the property name\n"
        "def find_user(user_id: str) -> User:\n"
        "    return load_user(user_id)  # sends the fields of User\n"
    ),
    notation="python",
)
TYPE_ADVICE: Final = "Annotate it with the type of its results: a dataclass, a TypedDict, a Struct or a pydantic model."
NO_ENDPOINT: Final = Rule(
    ("H706", "handler-without-endpoint", "MUST", "AGTP-API 12"),
    "A handler belongs to an endpoint that the document declares.",
    why="Usually the method or the path is misspelled, and the intended endpoint has no handler.",
    bad=(
        'document = "rooms.agis"  # BOOK /room\n\n[handlers."BOOK /rooms"]\n'
        'type = "registered_function"\nfunction = "rooms.handlers.book_room"\n'
    ),
    good=(
        'document = "rooms.agis"  # BOOK /room\n\n[handlers."BOOK /room"]\n'
        'type = "registered_function"\nfunction = "rooms.handlers.book_room"\n'
    ),
    notation="toml",
)
DOTTED_PATH: Final = Rule(
    ("H711", "function-path", "MUST", "AGTP-API 12.2"),
    "A function is named by one dotted path, module and function.",
    why="The server imports the function by this path; a name without a module is not sufficient.",
    bad='[endpoint.handler]\ntype = "registered_function"\nfunction = "book_room"\n',
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
    notation="toml",
)
NOT_HTTPS: Final = Rule(
    ("H712", "upstream-not-https", "MUST", "AGTP-API 12.3"),
    "The upstream's URL is https://.",
    fix="unsafe",
    why="Inputs and credentials would cross the network unencrypted.",
    bad=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "http://pms.example/rooms"\nmethod = "POST"\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
    ),
    notation="toml",
)
UPSTREAM_METHOD: Final = Rule(
    ("H713", "upstream-method", "MUST", "AGTP-API 12.3"),
    "The upstream's method is one of seven HTTP methods.",
    why="The upstream uses HTTP and refuses an AGTP verb or a misspelled method.",
    bad=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "BOOK"\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
    ),
    notation="toml",
)
UPSTREAM_ERROR_NAMES: Final = Rule(
    ("H714", "missing-upstream-errors", "MUST", "AGTP-API 12.3"),
    "The five upstream failures are declared errors.",
    fix="safe",
    why="These failures can always occur, and callers can handle only declared errors.",
    bad=(
        '[endpoint]\nerrors = ["room_unavailable"]\n\n[endpoint.handler]\n'
        'type = "external_service"\nurl = "https://pms.example/rooms"\n'
        'method = "POST"\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
    ),
    notation="toml",
)
ERROR_MAP: Final = Rule(
    ("H715", "error-map", "MUST", "AGTP-API 12.3"),
    "error_map maps HTTP status codes, or 4XX and 5XX, to declared errors.",
    fix="safe",
    why="An invalid status never occurs, and an undeclared error must not reach a caller.",
    bad=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n'
        '  "room_unavailable",\n]\n\n[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
        'error_map = { "409" = "room_taken" }\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n'
        '  "room_unavailable",\n]\n\n[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
        'error_map = { "409" = "room_unavailable" }\n'
    ),
    notation="toml",
)
TIMEOUT: Final = Rule(
    ("H716", "upstream-timeout", "MUST", "AGTP-API 12.3"),
    "timeout_seconds is a positive number.",
    why="With zero every call fails, and a call without a timeout may block its connection forever.",
    bad=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\ntimeout_seconds = 0\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n]\n\n'
        '[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\ntimeout_seconds = 5\n'
    ),
    notation="toml",
)
NO_ERROR_MAP: Final = Rule(
    ("H717", "no-error-map", "SHOULD", "AGTP-API 12.3"),
    "error_map names the upstream's failures; without it they all surface as upstream_error.",
    why="A caller that only knows that something failed can neither correct its input nor try an alternative.",
    bad=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n'
        '  "room_unavailable",\n]\n\n[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
    ),
    good=(
        '[endpoint]\nerrors = [\n  "upstream_timeout",\n'
        '  "upstream_connection_error",\n  "upstream_malformed_response",\n'
        '  "upstream_authentication_failed",\n  "upstream_error",\n'
        '  "room_unavailable",\n]\n\n[endpoint.handler]\ntype = "external_service"\n'
        'url = "https://pms.example/rooms"\nmethod = "POST"\n'
        'error_map = { "409" = "room_unavailable" }\n'
    ),
    notation="toml",
)
COMPOSITION_ERROR: Final = Rule(
    ("H718", "missing-composition-failed", "MUST", "AGTP-API 12.1"),
    "A composition declares composition_failed.",
    fix="safe",
    why="Any step can fail, and callers can handle only declared errors.",
    bad=(
        '[endpoint]\nerrors = ["room_unavailable"]\n\n[endpoint.handler]\n'
        'type = "composition"\nrecipe = "hold-and-book"\n'
    ),
    good=(
        '[endpoint]\nerrors = ["room_unavailable", "composition_failed"]\n\n'
        '[endpoint.handler]\ntype = "composition"\nrecipe = "hold-and-book"\n'
    ),
    notation="toml",
)
UNKNOWN_RECIPE: Final = Rule(
    ("H719", "unknown-recipe", "MUST", "AGTP-API 12.1"),
    "The recipe of a composition is registered at the server.",
    why="Without its recipe the endpoint cannot run.",
    bad='[endpoint.handler]\ntype = "composition"\nrecipe = "hold-and-bok"\n',
    good='[endpoint.handler]\ntype = "composition"\nrecipe = "hold-and-book"\n',
    notation="toml",
)


def check(endpoint: Endpoint, recipes: Collection[str]) -> Iterator[Diagnostic]:
    """Check the handler binding of one endpoint."""
    match endpoint.handler:
        case RegisteredFunction() as handler:
            yield from _check_function(endpoint, handler)
        case Composition() as handler:
            yield from _check_composition(endpoint, handler, recipes)
        case ExternalService() as handler:
            yield from _check_address(endpoint, handler)
            yield from _check_upstream(endpoint, handler)
            yield from _check_error_map(endpoint, handler)
        case McpTool() as handler:
            yield from _check_upstream(endpoint, handler)


def _check_function(endpoint: Endpoint, handler: RegisteredFunction) -> Iterator[Diagnostic]:
    if handler.target is None and not is_dotted_path(handler.function):
        message = f"{brief(handler.function)} is not the dotted path of a function"
        yield DOTTED_PATH.at(endpoint, "/handler/function", message, "Write it like rooms.handlers.book_room.")


def _check_composition(endpoint: Endpoint, handler: Composition, recipes: Collection[str]) -> Iterator[Diagnostic]:
    if COMPOSITION_FAILED not in endpoint.error_names:
        message = f"a composition declares the error {COMPOSITION_FAILED}"
        fix = _declaring(endpoint, (COMPOSITION_FAILED,))
        yield COMPOSITION_ERROR.at(endpoint, "/errors", message, "Add it to errors.", fix)
    if handler.recipe not in recipes:
        message = f"there is no recipe {brief(handler.recipe)}"
        yield UNKNOWN_RECIPE.at(endpoint, "/handler/recipe", message, "Define it in agtp-recipes.toml.")


def _check_address(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    if not _is_https(handler.url):
        message = f"{brief(handler.url)} is not an https:// URL"
        advice, fix = "Plain HTTP is refused, even in a private network.", None
        meant = f"https://{handler.url.removeprefix('http://')}"
        if handler.url.startswith("http://") and _is_https(meant):
            fix = Fix("Write https://", (Change("replace", "/handler/url", meant),), safe=False)
        yield NOT_HTTPS.at(endpoint, "/handler/url", message, advice, fix)
    if handler.method not in UPSTREAM_METHODS:
        message = f"the upstream's method is one of {', '.join(UPSTREAM_METHODS)}, not {brief(handler.method)}"
        yield UPSTREAM_METHOD.at(endpoint, "/handler/method", message)


def _check_upstream(endpoint: Endpoint, handler: ExternalService | McpTool) -> Iterator[Diagnostic]:
    missing = [name for name in UPSTREAM_ERRORS if name not in endpoint.error_names]
    if missing:
        message = f"an external service declares the error{'s' * (len(missing) > 1)} {', '.join(missing)}"
        fix = _declaring(endpoint, missing)
        yield UPSTREAM_ERROR_NAMES.at(endpoint, "/errors", message, "Add the missing errors.", fix)
    timeout: object = handler.timeout_seconds
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < float("inf"):
        yield TIMEOUT.at(
            endpoint, "/handler/timeout_seconds", f"timeout_seconds must be a positive number; got {brief(timeout)}"
        )


def _check_error_map(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    if not handler.error_map:
        message = "without an error_map every failure of the upstream surfaces as upstream_error"
        yield NO_ERROR_MAP.at(endpoint, "/handler/error_map", message, "Map the status codes that callers can act on.")
    for code, name in handler.error_map.items():
        pointer = f"/handler/error_map/{code}"
        if not is_upstream_status(code):
            message = f"{brief(code)} is not an HTTP status code"
            yield ERROR_MAP.at(endpoint, pointer, message, 'Write "404", or "4XX" or "5XX" for all of them.')
        if name not in endpoint.error_names:
            message = f"error_map maps to {brief(name)}, which is not a declared error"
            yield ERROR_MAP.at(endpoint, pointer, message, "Add it to errors.", _declaring(endpoint, (name,)))


_DESCRIPTIONS: Final = {
    COMPOSITION_FAILED: "A step of the composition failed.",
    "upstream_timeout": "The upstream did not answer in time.",
    "upstream_connection_error": "The upstream could not be reached.",
    "upstream_malformed_response": "The response of the upstream could not be read.",
    "upstream_authentication_failed": "The upstream refused this server.",
    "upstream_error": "The upstream failed.",
}


def _declaring(endpoint: Endpoint, names: Iterable[str]) -> Fix:
    """Add errors to the declared ones: a name to a list, a description to a table."""
    if not endpoint.errors:
        return Fix("Add the missing errors", (Change("replace", "/errors", list(names)),))
    described = any(error.description for error in endpoint.errors)
    changes = (
        Change("insert", "/errors", _DESCRIPTIONS.get(name, ""), key=name)
        if described
        else Change("append", "/errors", name)
        for name in names
    )
    return Fix("Add the missing errors", tuple(changes))


def _is_https(url: str) -> bool:
    try:
        parts = split_url(url)
        return parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
