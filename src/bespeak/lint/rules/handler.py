"""H7xx: the handler binding can work and declares the errors it can produce (AGTP-API 12)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import urlsplit

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import (
    COMPOSITION_FAILED,
    UPSTREAM_ERRORS,
    UPSTREAM_METHODS,
    Composition,
    ExternalService,
    RegisteredFunction,
    is_dotted_path,
    is_upstream_status,
)
from bespeak.diagnostics.brief import brief
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.lint.rule import Rule

NOT_RUNNABLE: Final = Rule(
    "H701", "handler-not-runnable", "MUST", "AGTP-API 13.2", "This server has the means to run the handler."
)
NOT_IMPORTABLE: Final = Rule(
    "H702", "function-not-importable", "MUST", "AGTP-API 12.2", "The function of a dotted path can be imported."
)
SIGNATURE: Final = Rule(
    "H703", "function-signature", "MUST", "AGTP-API 12.2", "The function can take the input its schema describes."
)
UPSTREAM_SETUP: Final = Rule(
    "H704",
    "upstream-setup",
    "MUST",
    "AGTP-API 12.3",
    "An upstream can be called as it is described, and every ${VAR} has a value.",
)
NO_HANDLER: Final = Rule(
    "H705",
    "endpoint-without-handler",
    "MUST",
    "AGTP-API 12",
    "Every endpoint of a document has a handler.",
)
NO_ENDPOINT: Final = Rule(
    "H706", "handler-without-endpoint", "MUST", "AGTP-API 12", "A handler is for an endpoint the document declares."
)
DOTTED_PATH: Final = Rule(
    "H711", "function-path", "MUST", "AGTP-API 12.2", "A function is named by one dotted path, module and function."
)
NOT_HTTPS: Final = Rule("H712", "upstream-not-https", "MUST", "AGTP-API 12.3", "The upstream's URL is https://.")
UPSTREAM_METHOD: Final = Rule(
    "H713", "upstream-method", "MUST", "AGTP-API 12.3", "The upstream's method is one of seven HTTP methods."
)
UPSTREAM_ERROR_NAMES: Final = Rule(
    "H714", "missing-upstream-errors", "MUST", "AGTP-API 12.3", "The five upstream failures are declared errors."
)
ERROR_MAP: Final = Rule(
    "H715", "error-map", "MUST", "AGTP-API 12.3", "error_map leads from HTTP status codes to declared errors."
)
TIMEOUT: Final = Rule("H716", "upstream-timeout", "MUST", "AGTP-API 12.3", "timeout_seconds is a positive number.")
NO_ERROR_MAP: Final = Rule(
    "H717",
    "no-error-map",
    "SHOULD",
    "AGTP-API 12.3",
    "error_map names the upstream's failures; without it they all surface as upstream_error.",
)
COMPOSITION_ERROR: Final = Rule(
    "H718", "missing-composition-failed", "MUST", "AGTP-API 12.1", "A composition declares composition_failed."
)
UNKNOWN_RECIPE: Final = Rule(
    "H719", "unknown-recipe", "MUST", "AGTP-API 12.1", "The recipe of a composition is registered at the server."
)

RULES: Final = (
    NOT_RUNNABLE,
    NOT_IMPORTABLE,
    SIGNATURE,
    UPSTREAM_SETUP,
    NO_HANDLER,
    NO_ENDPOINT,
    DOTTED_PATH,
    NOT_HTTPS,
    UPSTREAM_METHOD,
    UPSTREAM_ERROR_NAMES,
    ERROR_MAP,
    TIMEOUT,
    NO_ERROR_MAP,
    COMPOSITION_ERROR,
    UNKNOWN_RECIPE,
)
"""H701 to H706 are found when the server binds the handler; the others need nothing but the contract."""


def check(endpoint: Endpoint, recipes: Collection[str]) -> Iterator[Diagnostic]:
    """Findings about the handler binding of one endpoint."""
    match endpoint.handler:
        case RegisteredFunction() as handler:
            yield from _check_function(endpoint, handler)
        case Composition() as handler:
            yield from _check_composition(endpoint, handler, recipes)
        case ExternalService() as handler:
            yield from _check_upstream(endpoint, handler)
            yield from _check_error_map(endpoint, handler)


def _check_function(endpoint: Endpoint, handler: RegisteredFunction) -> Iterator[Diagnostic]:
    if handler.target is None and not is_dotted_path(handler.function):
        message = f"{brief(handler.function)} is no dotted path of a function"
        yield DOTTED_PATH.at(endpoint, "/handler/function", message, "Write it like rooms.handlers.book_room.")


def _check_composition(endpoint: Endpoint, handler: Composition, recipes: Collection[str]) -> Iterator[Diagnostic]:
    if COMPOSITION_FAILED not in endpoint.error_names:
        message = f"a composition declares the error {COMPOSITION_FAILED}"
        yield COMPOSITION_ERROR.at(endpoint, "/errors", message, "Add it to errors.")
    if handler.recipe not in recipes:
        message = f"there is no recipe {brief(handler.recipe)}"
        yield UNKNOWN_RECIPE.at(endpoint, "/handler/recipe", message, "Define it in agtp-recipes.toml.")


def _check_upstream(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    if not _is_https(handler.url):
        message = f"{brief(handler.url)} is no https:// URL"
        yield NOT_HTTPS.at(endpoint, "/handler/url", message, "Plain HTTP is refused, in a private network too.")
    if handler.method not in UPSTREAM_METHODS:
        message = f"the upstream's method is one of {', '.join(UPSTREAM_METHODS)}, not {brief(handler.method)}"
        yield UPSTREAM_METHOD.at(endpoint, "/handler/method", message)
    missing = [name for name in UPSTREAM_ERRORS if name not in endpoint.error_names]
    if missing:
        message = f"an external service declares the error{'s' * (len(missing) > 1)} {', '.join(missing)}"
        yield UPSTREAM_ERROR_NAMES.at(endpoint, "/errors", message, "Add what is missing to errors.")
    timeout: object = handler.timeout_seconds
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < float("inf"):
        yield TIMEOUT.at(
            endpoint, "/handler/timeout_seconds", f"timeout_seconds is a positive number, not {brief(timeout)}"
        )


def _check_error_map(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    if not handler.error_map:
        message = "without an error_map every failure of the upstream surfaces as upstream_error"
        yield NO_ERROR_MAP.at(endpoint, "/handler/error_map", message, "Map the statuses callers can act on.")
    for code, name in handler.error_map.items():
        pointer = f"/handler/error_map/{code}"
        if not is_upstream_status(code):
            yield ERROR_MAP.at(endpoint, pointer, f"{brief(code)} is no HTTP status code")
        if name not in endpoint.error_names:
            message = f"error_map leads to {brief(name)}, which is no declared error"
            yield ERROR_MAP.at(endpoint, pointer, message, "Add it to errors.")


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
