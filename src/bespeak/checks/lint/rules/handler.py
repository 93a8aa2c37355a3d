"""H7xx: a handler is complete, declares its errors, and describes its requests without secrets (AGTP-API 12)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from bespeak.contract import handler as handlers
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
from bespeak.contract.schema.subschemas import COMPOSING
from bespeak.protocol.address import split_url
from bespeak.protocol.exchange.headers import is_header_name, is_media_type
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.identifiers import apart
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Change

NOT_RUNNABLE: Final = Rule("H701", "handler-not-runnable", "MUST", "AGTP-API 13.2")
NOT_IMPORTABLE: Final = Rule("H702", "function-not-importable", "MUST", "AGTP-API 12.2")
MODULE: Final = Rule("H730", "module-not-importable", "MUST", "bespeak")
SIGNATURE: Final = Rule("H703", "function-signature", "MUST", "AGTP-API 12.2")
UPSTREAM_SETUP: Final = Rule("H704", "upstream-setup", "MUST", "AGTP-API 12.3")
UPSTREAM_UNREACHABLE: Final = Rule("H707", "upstream-unreachable", "SHOULD", "AGTP-API 13.2")
NO_HANDLER: Final = Rule("H705", "endpoint-without-handler", "MUST", "AGTP-API 12")
OPEN_RESULT: Final = Rule("H708", "open-result", "SHOULD", "bespeak")
TYPE_ADVICE: Final = "Annotate it with the type of its results: a dataclass, a TypedDict, a Struct or a pydantic model."
NO_ENDPOINT: Final = Rule("H706", "handler-without-endpoint", "MUST", "AGTP-API 12")
DOTTED_PATH: Final = Rule("H711", "function-path", "MUST", "AGTP-API 12.2")
NOT_HTTPS: Final = Rule("H712", "upstream-not-https", "MUST", "AGTP-API 12.3", fix="unsafe")
UPSTREAM_METHOD: Final = Rule("H713", "upstream-method", "MUST", "AGTP-API 12.3")
UPSTREAM_ERROR_NAMES: Final = Rule("H714", "missing-upstream-errors", "MUST", "AGTP-API 12.3", fix="safe")
ERROR_MAP: Final = Rule("H715", "error-map", "MUST", "AGTP-API 12.3", fix="safe")
TIMEOUT: Final = Rule("H716", "upstream-timeout", "MUST", "AGTP-API 12.3")
NO_ERROR_MAP: Final = Rule("H717", "no-error-map", "SHOULD", "AGTP-API 12.3")
COMPOSITION_ERROR: Final = Rule("H718", "missing-composition-failed", "MUST", "AGTP-API 12.1", fix="safe")
UNKNOWN_RECIPE: Final = Rule("H719", "unknown-recipe", "MUST", "AGTP-API 12.1")


def check(endpoint: Endpoint, recipes: Collection[str]) -> Iterator[Diagnostic]:
    if endpoint.streams and isinstance(endpoint.handler, Composition | ExternalService | McpTool):
        message = f"the endpoint has `streams`, but a handler of type {endpoint.handler.type} yields no items"
        yield SIGNATURE.at(endpoint, "/streams", message, "Remove `streams`, or use a function that yields.")
    match endpoint.handler:
        case RegisteredFunction() as handler if handler.target is None and not is_dotted_path(handler.function):
            message = f"{brief(handler.function)} is not the dotted path of a function"
            yield DOTTED_PATH.at(endpoint, "/handler/function", message, "Write it like rooms.handlers.book_room.")
        case Composition() as handler:
            yield from _check_composition(endpoint, handler, recipes)
        case ExternalService() as handler:
            yield from _check_address(endpoint, handler)
            yield from _check_upstream(endpoint, handler)
            yield from _check_error_map(endpoint, handler)
        case McpTool() as handler:
            yield from _check_upstream(endpoint, handler)


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
        message = f"timeout_seconds must be a positive number; got {brief(timeout)}"
        yield TIMEOUT.at(endpoint, "/handler/timeout_seconds", message)


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
    if any(error.description for error in endpoint.errors):
        changes = [Change("insert", "/errors", _DESCRIPTIONS.get(name, ""), key=name) for name in names]
    else:
        changes = [Change("append", "/errors", name) for name in names]
    return Fix("Add the missing errors", tuple(changes))


def _is_https(url: str) -> bool:
    try:
        parts = split_url(url)
        return parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


UNKNOWN_FIELD: Final = Rule("H720", "upstream-field-unknown", "MUST", "AGTP-API 12.3")
TWO_PLACES: Final = Rule("H721", "upstream-field-in-two-places", "MUST", "AGTP-API 12.3")
FILES: Final = Rule("H722", "upstream-files", "MUST", "AGTP-API 12.3")
BODY: Final = Rule("H723", "upstream-body", "MUST", "AGTP-API 12.3")
BODY_FIELD: Final = Rule("H724", "upstream-body-field", "MUST", "AGTP-API 12.3")
ANSWER: Final = Rule("H725", "upstream-answer", "MUST", "AGTP-API 12.3")
LISTS: Final = Rule("H726", "upstream-lists", "MUST", "AGTP-API 12.3")
HEADER: Final = Rule("H727", "upstream-header-not-for-callers", "MUST", "AGTP-API 12.3")
SAME_NAME: Final = Rule("H728", "upstream-name-said-twice", "MUST", "AGTP-API 12.3")
LITERAL: Final = Rule("H729", "credential-in-file", "SHOULD", "AGTP-API 12.3")

_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})
_INDIRECT: Final = COMPOSING | {"dependentSchemas"}


def check_request(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the upstream request and response that a handler describes, if it has an upstream."""
    handler = endpoint.handler
    if not isinstance(handler, ExternalService):
        return
    parts = (_check_fields, _check_body, _check_lists, _check_headers, _check_names, _check_credentials, _check_answer)
    for check_part in parts:
        yield from check_part(endpoint, handler)


def _places(handler: ExternalService) -> Iterator[tuple[str, str, str]]:
    """Yield each field that a handler names, with the key that names it and its place in the endpoint."""
    for key, names in (("query", handler.query), ("files", handler.files)):
        yield from ((name, key, f"/handler/{key}/{index}") for index, name in enumerate(names))
    for key, keyed in (("header_fields", handler.header_fields), ("cookie_fields", handler.cookie_fields)):
        yield from ((name, key, child(f"/handler/{key}", name)) for name in keyed)
    if handler.body_field is not None:
        yield handler.body_field, "body_field", "/handler/body_field"


def _notations(handler: ExternalService) -> Iterator[tuple[str, str, str]]:
    """Yield each field whose notation a handler sets, with the key that sets it and its place in the endpoint."""
    for key, keyed in (("lists", handler.lists), ("part_types", handler.part_types)):
        yield from ((name, key, child(f"/handler/{key}", name)) for name in keyed)
    yield from ((name, "reserved", f"/handler/reserved/{index}") for index, name in enumerate(handler.reserved))


def _check_fields(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    declared = _declared(endpoint.input_schema)
    placed = dict.fromkeys(handler.path_fields, "url")
    named = [*((True, *one) for one in _places(handler)), *((False, *one) for one in _notations(handler))]
    for is_place, name, key, at in named:
        if declared is not None and name not in declared:
            message = f"{key} names {brief(name)}, which the input schema does not declare"
            yield UNKNOWN_FIELD.at(endpoint, at, message, _known(declared))
        first = placed.setdefault(name, key) if is_place else key
        if first != key:
            message = f"{brief(name)} is in {first} and in {key}"
            yield TWO_PLACES.at(endpoint, at, message, "Keep the one that the upstream expects.")


def _check_body(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    form = handler.body_form
    if form not in handlers.BODY_FORMS:
        message = f"body is one of {', '.join(handlers.BODY_FORMS)}, not {brief(form)}"
        yield BODY.at(endpoint, "/handler/body", message)
        return
    if handler.method in ("GET", "HEAD") and form != "none":
        key = "body_field" if handler.body is None else "body"
        advice = "Remove it: the fields are sent in the query. A body requires another method."
        yield BODY.at(endpoint, f"/handler/{key}", f"{handler.method} has no body, but {key} requires one", advice)
    if handler.files and form != "multipart":
        advice = 'Write body = "multipart", or remove files.'
        yield FILES.at(endpoint, "/handler/files", f"files cannot be sent in a body that is {form}", advice)
    for name, media_type in handler.part_types.items():
        at = child("/handler/part_types", name)
        if form != "multipart":
            advice = 'Write body = "multipart", or remove part_types.'
            yield FILES.at(endpoint, at, f"a body that is {form} has no parts with media types", advice)
        elif not is_media_type(media_type):
            message = f"{brief(media_type)} is not a valid media type"
            yield FILES.at(endpoint, at, message, "Write for example image/png.")
    if handler.body_field is not None and form != "json":
        message = f"body_field is the whole body, which cannot be {form}"
        advice = 'Write body = "json", or remove body_field to send all fields as the body.'
        yield BODY_FIELD.at(endpoint, "/handler/body_field", message, advice)


def _check_lists(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    elsewhere = {name for name, key, _ in _places(handler) if key != "query"} | {*handler.path_fields}
    implied = handler.body_form in ("none", "form", "multipart") or handler.body_field is not None
    for name, style in handler.lists.items():
        if style not in handlers.LIST_STYLES:
            message = f"the style of {brief(name)} is one of {', '.join(handlers.LIST_STYLES)}, not {brief(style)}"
            yield LISTS.at(endpoint, child("/handler/lists", name), message)
    for name, key, at in _notations(handler):
        if key != "part_types" and (name in elsewhere or not (implied or name in handler.query)):
            message = f"{brief(name)} is not in the query or a form, so {key} has no effect"
            yield LISTS.at(endpoint, at, message, f"Add it to query, or remove it from {key}.")


def _check_headers(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    configured = {name.lower() for name in handler.headers}
    for name, header in handler.header_fields.items():
        at = child("/handler/header_fields", name)
        if not is_header_name(header):
            message = f"{brief(header)} is not a valid header name"
            yield HEADER.at(endpoint, at, message, "Use letters, digits and hyphens.")
        elif handlers.is_reserved_header(header):
            message = f"an input field must not set the header {header}"
            yield HEADER.at(endpoint, at, message, "If the upstream needs it, set it in headers.")
        elif header.lower() in configured:
            message = f"the header {header} is already in headers"
            yield HEADER.at(endpoint, at, message, "Keep one of the two.")
    for name, cookie in handler.cookie_fields.items():
        if not is_header_name(cookie):
            at, message = child("/handler/cookie_fields", name), f"{brief(cookie)} is not a valid cookie name"
            yield HEADER.at(endpoint, at, message, "Use letters, digits and hyphens.")


def _check_names(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    advice = "Give each its own name."
    for key, names, taken in (
        ("header_fields", {name: header.lower() for name, header in handler.header_fields.items()}, frozenset[str]()),
        ("cookie_fields", handler.cookie_fields, handler.cookie_credentials.keys()),
    ):
        for name in _repeated(names, taken):
            message = f"{key} uses the name {brief(names[name])} twice, or a credential has it"
            yield SAME_NAME.at(endpoint, child(f"/handler/{key}", name), message, advice)
    for name in _in_query(endpoint, handler):
        if handler.input_transform.get(name, name) in handler.query_credentials:
            message = f"{brief(name)} goes into the query under the name of a credential"
            yield SAME_NAME.at(endpoint, "/handler/query_credentials", message, "Rename it by input_transform.")


def _repeated(names: Mapping[str, str], taken: Iterable[str]) -> Iterator[str]:
    seen = set(taken)
    for name, theirs in names.items():
        if theirs in seen:
            yield name
        seen.add(theirs)


def _in_query(endpoint: Endpoint, handler: ExternalService) -> Iterator[str]:
    elsewhere = {name for name, key, _ in _places(handler) if key != "query"} | {*handler.path_fields}
    yield from handler.query
    if handler.body_form == "none" or handler.body_field is not None:
        yield from sorted((_declared(endpoint.input_schema) or frozenset()) - elsewhere - {*handler.query})


def _check_credentials(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    for key, values in (
        ("headers", handler.headers),
        ("query_credentials", handler.query_credentials),
        ("cookie_credentials", handler.cookie_credentials),
    ):
        for name, value in values.items():
            if "${" not in value and (key != "headers" or name.lower() in _SECRET_HEADERS):
                message = f"the credential {brief(name)} is written in the file"
                advice = "Write ${VAR}, set the variable where the server starts, and replace the credential."
                yield LITERAL.at(endpoint, child(f"/handler/{key}", name), message, advice)


def _check_answer(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    field, at = handler.output_field, "/handler/output_field"
    if handler.answer not in handlers.ANSWER_FORMS:
        message = f"answer is one of {', '.join(handlers.ANSWER_FORMS)}, not {brief(handler.answer)}"
        yield ANSWER.at(endpoint, "/handler/answer", message)
    elif field is None:
        if handler.answer == "text":
            message = "the upstream responds with text, but output_field is missing"
            yield ANSWER.at(endpoint, "/handler/answer", message, "Write the name of the field as output_field.")
    elif handler.answer == "none":
        yield ANSWER.at(endpoint, at, "output_field has no effect because the response is ignored", "Leave it out.")
    else:
        declared = _declared(endpoint.output_schema)
        # An output without properties may have any field.
        if declared and field not in declared:
            message = f"output_field names {brief(field)}, which the output schema does not declare"
            yield ANSWER.at(endpoint, at, message, _known(declared))


def _declared(schema: Any) -> frozenset[str] | None:
    """Return the fields that a schema declares; None if more may come from elsewhere."""
    if not isinstance(schema, dict) or not _INDIRECT.isdisjoint(schema):
        return None
    return frozenset(as_mapping(schema.get("properties")))


def _known(declared: frozenset[str]) -> str:
    names = sorted(declared)
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"It declares {shown}." if names else "It declares no fields."


MCP_ADDRESS: Final = Rule("H731", "mcp-server-address", "MUST", "AGTP-API 12.3")
MCP_KEYS: Final = Rule("H732", "mcp-key-without-effect", "MUST", "AGTP-API 12.3")
MCP_SECRET: Final = Rule("H733", "mcp-secret-in-file", "SHOULD", "AGTP-API 12.3")

MCP_TARGET: Final = Rule("H734", "mcp-target", "MUST", "AGTP-API 12.3")

_SECRET: Final = re.compile(
    r"(?:^|[-_?&])(?:(?:api|access|private|secret)[-_]?)?(?:key|token|secret|password|passwd|credentials?)$",
    re.IGNORECASE,
)
_PREFIXED: Final = re.compile(r"(?:sk|rk|pk|pat|ghp|gho|ghs|glpat|xox[abp]|ntn|sbp|npm)[-_.][A-Za-z0-9_-]{12,}")
"""Keys of services that are recognised by their beginning."""


def check_mcp(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the MCP server that a handler names, if it names one."""
    handler = endpoint.handler
    if not isinstance(handler, handlers.McpTool):
        return
    server, at = handler.mcp, "/handler/mcp"
    if sum(map(bool, (server.tool, server.prompt, server.resource))) > 1:
        message = "the handler names more than one of tool, prompt and resource"
        yield MCP_TARGET.at(endpoint, at, message, "Write one of them.")
    if bool(server.command) == bool(server.url):
        message = "the MCP server has a command and a url" if server.url else "the MCP server has no command and no url"
        yield MCP_ADDRESS.at(endpoint, at, message, "Write one of them.")
        return
    if server.url and not handlers.is_usable_address(handlers.VARIABLE.sub("x", server.url)):
        message = f"{brief(server.url)} is not an https:// URL"
        advice = "Plain HTTP is accepted only for a server on this machine, such as http://127.0.0.1:8000/mcp."
        yield MCP_ADDRESS.at(endpoint, f"{at}/url", message, advice)
    owner, unused = ("url", ("args", "env", "folder")) if server.url else ("command", ("headers", "token_file"))
    for key in unused:
        if getattr(server, key):
            message = f"`{key}` has no effect, because the MCP server has a {owner}"
            yield MCP_KEYS.at(endpoint, f"{at}/{key}", message, "Remove it.")
    for place, name in secrets(server):
        message = f"the value of {name} is written in the file"
        advice = "Write ${VAR}, set the variable where the server starts, and replace the secret."
        yield MCP_SECRET.at(endpoint, f"{at}{place}", message, advice)


def secrets(server: handlers.McpServer) -> Iterator[tuple[str, str]]:
    """Yield what looks like a secret that is written out: its pointer from the table, and the name of its option."""
    option = ""
    for at, argument in enumerate(server.args):
        name, _, value = argument.partition("=")
        given = value if value and argument.startswith("-") else "" if argument.startswith("-") else argument
        named = name if value and argument.startswith("-") else option
        if given and "${" not in given and (_SECRET.search(named) or _PREFIXED.search(given)):
            yield f"/args/{at}", brief(named or f"argument {at + 1}")
        option = argument if argument.startswith("-") and not value else ""
    for pair in server.url.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        if value and "${" not in value and _SECRET.search(apart(name, "_").lower()):
            yield "/url", brief(name)
    for name, value in server.headers.items():
        if "${" not in value and name.lower() in _SECRET_HEADERS:
            yield f"/headers/{name}", brief(name)
