"""The handler block of an endpoint file: three kinds, each with its own keys (AGTP-API 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bespeak.contract.handler import (
    ANSWER_FORMS,
    BODY_FORMS,
    HANDLER_TYPES,
    LIST_STYLES,
    UPSTREAM_METHODS,
    Composition,
    ExternalService,
    HandlerBinding,
    RegisteredFunction,
    is_dotted_path,
    is_upstream_status,
)
from bespeak.documents.rules import UNSUPPORTED_HANDLER
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table


def read_handler(block: Table) -> HandlerBinding | None:
    """Read the binding if its kind is known. Registration checks whether its target can be reached."""
    kind = block.choice("type", HANDLER_TYPES)
    if kind is None:
        if not block.has("type"):
            block.missing("type", f"One of {', '.join(HANDLER_TYPES)}.")
        return None
    binding = _READERS[kind](block)
    block.finish()
    return binding


def _read_function(block: Table) -> RegisteredFunction:
    if block.has("module"):
        block.findings.error(
            UNSUPPORTED_HANDLER,
            "`module` beside `function` is not supported (AGTP-API 12.2)",
            block.pointer("module"),
            'Write one dotted path: function = "module.function".',
        )
    key = block.either("function", "reference")
    function = block.need_text(key, 'A dotted path, function = "module.function".')
    if function and not block.has("module") and not is_dotted_path(function):
        block.findings.error(
            WRONG_VALUE,
            f"`{key}` is {brief(function)}, which is not a dotted path of a module and a function (AGTP-API 12.2)",
            block.pointer(key),
        )
    return RegisteredFunction(function=function, blocking=block.boolean("blocking") or False)


def _read_composition(block: Table) -> Composition:
    for key in ("steps", "plan"):
        if block.has(key):
            block.findings.error(
                UNSUPPORTED_HANDLER,
                f"`{key}`: steps inside an endpoint are not supported (AGTP-API 12.1)",
                block.pointer(key),
                "Move them into agtp-recipes.toml and name the recipe here.",
            )
    return Composition(recipe=block.need_text(block.either("recipe", "reference"), "The name of a recipe."))


def _read_external(block: Table) -> ExternalService:
    method = block.value("method")
    if isinstance(method, str) and method.upper() in UPSTREAM_METHODS:
        method = method.upper()
    elif not block.has("method"):
        block.missing("method", f"The HTTP method of the upstream: one of {', '.join(UPSTREAM_METHODS)}.")
    else:
        block.choice("method", UPSTREAM_METHODS)
    timeout = block.positive("timeout_seconds")
    return ExternalService(
        url=block.need_text(block.either("url", "reference"), "The https:// URL of the upstream."),
        method=method if isinstance(method, str) else "",
        headers=block.text_map("headers"),
        query_credentials=block.text_map("query_credentials"),
        cookie_credentials=block.text_map("cookie_credentials"),
        input_transform=block.text_map(block.either("input_transform", "input_map")),
        output_transform=block.text_map(block.either("output_transform", "output_map")),
        error_map=_read_error_map(block),
        timeout_seconds=30.0 if timeout is None else float(timeout),
        query=block.texts("query"),
        lists=_read_lists(block),
        header_fields=block.text_map("header_fields"),
        cookie_fields=block.text_map("cookie_fields"),
        body=block.choice("body", BODY_FORMS),
        body_field=block.text("body_field"),
        files=block.texts("files"),
        answer=block.choice("answer", ANSWER_FORMS) or "json",
        output_field=block.text("output_field"),
    )


def _read_error_map(block: Table) -> dict[str, str]:
    error_map = block.text_map("error_map")
    for status in error_map:
        if not is_upstream_status(status):
            message = f"`error_map` has the key {brief(status)}, which is not an HTTP status"
            advice = 'Write three digits, "404", or "4XX" or "5XX" for all others of their kind.'
            block.findings.error(WRONG_VALUE, message, block.pointer("error_map"), advice)
    return error_map


def _read_lists(block: Table) -> dict[str, str]:
    styles = block.table("lists")
    if styles is None:
        return {}
    chosen = {name: styles.choice(name, LIST_STYLES) for name in styles.data}
    return {name: style for name, style in chosen.items() if style is not None}


_READERS: Final[dict[str, Callable[[Table], HandlerBinding]]] = {
    RegisteredFunction.type: _read_function,
    Composition.type: _read_composition,
    ExternalService.type: _read_external,
}
