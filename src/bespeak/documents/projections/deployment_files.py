"""A service as deployment files: configuration, endpoint files, and a module of functions to implement."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import chain, count
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, HandlerBinding, McpTool, RegisteredFunction
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import DEFAULT_CATALOG, Service
from bespeak.documents.toml_text import toml_text
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.identifiers import slug

HANDLERS: Final = "handlers"  # module that holds the functions

_UPSTREAM_KEYS: Final = (
    *("headers", "query_credentials", "cookie_credentials", "query", "lists", "reserved", "header_fields"),
    *("cookie_fields", "input_transform", "body", "body_field", "files", "part_types", "answer", "output_field"),
    *("output_transform", "error_map"),
)
_SERVER_KEYS: Final = (
    *("tool", "prompt", "resource", "input_digest"),
    *("command", "args", "env", "folder", "url", "headers", "token_file"),
)
_UPSTREAM_DEFAULTS: Final = {"answer": "json"}

_HEAD: Final = '''"""Handlers of the endpoints of {service}. Every function here has yet to be implemented.

A function gets the whole input as a dict that matches the input schema, and returns a dict that matches the output
schema. To answer with a declared error, use `raise bespeak.Refusal("name of an error")`. A function may also have named
and typed parameters: it then gets the input fields of these names.
"""

from __future__ import annotations

from typing import Any

from bespeak.protocol.exchange.refusal import Refused


def _not_implemented(endpoint: str, function: str) -> Refused:
    message = f"{{endpoint}} is not implemented yet. The operator must implement {{function}}() in handlers.py."
    return Refused(501, "not-implemented", message)
'''
_FUNCTION: Final = '''

def {name}({parameter}: dict[str, Any]) -> dict[str, Any] | Refused:
    """{title}

{body}
    """
    return _not_implemented({endpoint!r}, {name!r})
'''


def deployment_files(service: Service) -> dict[str, str]:
    """Return the text of every file by its path. Endpoints keep everything except their handlers."""
    endpoints = [endpoint for endpoint in service.endpoints if not endpoint.builtin]
    names = function_names(endpoints)
    files = {"bespeak.toml": toml_text(configuration_data(service))}
    for endpoint, name in zip(endpoints, names, strict=True):
        files[f"endpoints/{name.replace('_', '-')}.toml"] = toml_text({"endpoint": endpoint_data(endpoint, name)})
    title = _quoted(service.identity.name or service.identity.server_id)
    functions = (_function(endpoint, name) for endpoint, name in zip(endpoints, names, strict=True))
    files[f"{HANDLERS}.py"] = _HEAD.format(service=title) + "".join(functions)
    return files


def function_names(endpoints: list[Endpoint]) -> list[str]:
    """Name the function of each endpoint: its tool name, extended by path segments if that is taken (AGIS C.2)."""
    names: dict[str, None] = {}
    for endpoint in endpoints:
        words = [slug(endpoint.method) or "call", *filter(None, map(slug, endpoint.path.split("/")))]
        longer = ("_".join(words[:end]) for end in range(min(2, len(words)), len(words) + 1))
        choices = [_identifier(choice) for choice in (endpoint.semantic.mcp_tool_name or "", *longer)]
        name = next((choice for choice in choices if choice and choice not in names), "")
        number = 2
        while not name or name in names:
            name = f"{choices[-1] or 'call'}_{number}"
            number += 1
        names[name] = None
    return list(names)


def whole_input_name(fields: Collection[str]) -> str:
    """Name the parameter that takes the whole input, unlike the name of any field."""
    longer = ("whole" + "_input" * times for times in count(1))
    names = (name for name in chain(("values", "given"), longer) if name not in fields)
    return next(name for name in names if near_field(name, fields) is None)


def near_field(name: str, fields: Collection[str]) -> str | None:
    """Return the field that a parameter seems to misspell. A name twice as long as a field never does."""
    near = get_close_matches(name, fields, n=1, cutoff=0.8)
    return near[0] if near else None


def endpoint_data(endpoint: Endpoint, function: str) -> dict[str, Any]:
    semantic = endpoint.semantic.to_json()
    if not semantic["capability"]:
        del semantic["capability"]
    errors = {error.name: error.description for error in endpoint.errors}
    data: dict[str, Any] = {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "namespace": endpoint.namespace,
        "reviewed": None if endpoint.reviewed else False,
        "required_scopes": list(endpoint.required_scopes) or None,
        "errors": errors if any(errors.values()) else list(endpoint.error_names),
        "semantic": semantic,
        "handler": handler_data(endpoint.handler, function),
        "deprecated": endpoint.deprecated.to_json() if endpoint.deprecated else None,
        "cost": endpoint.cost.to_json() if endpoint.cost else None,
        "confirm": endpoint.confirm,
        "internal": endpoint.internal or None,
        "since": endpoint.since,
        "streams": endpoint.streams or None,
        "input_schema": _schema(endpoint.input_schema),
        "output_schema": _schema(endpoint.output_schema),
    }
    return {key: value for key, value in data.items() if value is not None}


def handler_data(handler: HandlerBinding, function: str) -> dict[str, Any]:
    """Build the `[endpoint.handler]` table: an upstream unchanged, otherwise the function to implement."""
    if not isinstance(handler, ExternalService | McpTool):
        return {"type": RegisteredFunction.type, "function": f"{HANDLERS}.{function}"}
    timeout = handler.timeout_seconds
    waiting = {"timeout_seconds": int(timeout) if timeout == int(timeout) else timeout}
    if isinstance(handler, McpTool):
        return {"type": handler.type, **waiting, "mcp": _written(handler.mcp, _SERVER_KEYS)}
    own = _written(handler, _UPSTREAM_KEYS)
    return {"type": handler.type, "url": handler.url, "method": handler.method, **own, **waiting}


def _written(settings: object, keys: tuple[str, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name in keys:
        value = getattr(settings, name)
        if value and value != _UPSTREAM_DEFAULTS.get(name):
            plain = list(value) if isinstance(value, tuple) else value
            data[name] = dict(plain) if isinstance(plain, Mapping) else plain
    return data


def configuration_data(service: Service) -> dict[str, Any]:
    identity = service.identity
    server = {
        "server_id": identity.server_id,
        "operator": identity.operator,
        "contact": identity.contact,
        "name": identity.name or None,
        "description": service.description or None,
        "document_version": service.document_version,
        "catalog": service.catalog if service.catalog != DEFAULT_CATALOG else None,
    }
    configuration: dict[str, Any] = {"server": {key: value for key, value in server.items() if value is not None}}
    if service.apis:
        configuration["apis"] = [dict(entry) for entry in service.apis]
    if service.policies.methods.custom:
        configuration["policies"] = {"methods": {"custom": list(service.policies.methods.custom)}}
    if rates := service.rate_limits:
        given = {"agent": rates.agent, "principal": rates.principal, "address": rates.address}
        limits: dict[str, Any] = {name: str(rate) for name, rate in given.items() if rate is not None}
        own = {f"{method} {path}": str(rate) for (method, path), rate in rates.endpoints.items()}
        configuration["limits"] = {"rate": limits | ({"endpoints": own} if own else {})}
    if (vocabulary := service.vocabulary) is not None:
        block = {
            "domain": vocabulary.domain,
            "namespace": vocabulary.namespace,
            "version": vocabulary.version,
            # A configuration that is negotiable without a data manifest is refused.
            "negotiable": (vocabulary.negotiable and service.data_manifest is not None) or None,
        }
        configuration["vocabulary"] = {key: value for key, value in block.items() if value is not None}
    if service.data_manifest is not None:
        configuration["data_manifest"] = service.data_manifest.to_json()
    return {name: block for name, block in configuration.items() if block}


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "$schema" or value != DIALECT}


def _function(endpoint: Endpoint, name: str) -> str:
    properties = endpoint.input_schema.get("properties")
    taken = properties if isinstance(properties, Mapping) else {}
    required = endpoint.input_schema.get("required")
    optional = [field for field in taken if not isinstance(required, list) or field not in required]
    needed = ", ".join(field for field in taken if field not in optional) or "nothing required"
    more = f"; optional: {', '.join(optional)}" if optional else ""
    errors = ", ".join(endpoint.error_names) or "none declared"
    lines = [endpoint.semantic.intent, "", f"Input: {needed}{more}", f"Errors: {errors}"]
    return _FUNCTION.format(
        name=name,
        parameter=whole_input_name(taken),
        title=_quoted(str(endpoint)),
        body="\n".join(f"    {_quoted(line)}".rstrip() for line in lines),
        endpoint=str(endpoint),
    )


def _identifier(text: str) -> str:
    """Return a name for a function and its file; empty if not valid. File systems limit length and may ignore case."""
    text = text.lower()[:80]
    if not text.isidentifier() or not text.isascii() or text.startswith("_"):
        return ""
    # A function called `dict` would break the annotation `dict[str, Any]`.
    return f"{text}_" if keyword.iskeyword(text) or hasattr(builtins, text) else text


def _quoted(text: str) -> str:
    """Escape a text for a docstring, on one line."""
    return printable(" ".join(text.split())).replace("\\", "\\\\").replace('"', '\\"')
