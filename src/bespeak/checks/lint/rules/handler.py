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
