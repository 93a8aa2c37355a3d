"""H72x, H73x: requests to an upstream or MCP server are well defined, without secrets in the file (AGTP-API 12.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bespeak.contract import handler as handlers
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.contract.schema.subschemas import COMPOSING
from bespeak.protocol.exchange.headers import is_header_name, is_media_type
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import child

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


def check(endpoint: Endpoint) -> Iterator[Diagnostic]:
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
        if value and "${" not in value and _SECRET.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()):
            yield "/url", brief(name)
    for name, value in server.headers.items():
        if "${" not in value and name.lower() in _SECRET_HEADERS:
            yield f"/headers/{name}", brief(name)
