"""J60x and J63x: the errors of an endpoint have descriptive names (AGTP-API 6.3, AGIS 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.endpoint import Endpoint
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, instead, unquoted
from bespeak.text.identifiers import snake
from bespeak.text.source.tree import Change

ERROR_NAME: Final = Rule("J605", "error-name", "MUST", "AGTP-API 6.3")
REPEATED_ERROR: Final = Rule("J606", "repeated-error", "MUST", "AGTP-API 6.3", fix="unsafe")
UNDECLARED_ERROR: Final = Rule("J607", "undeclared-error", "MUST", "AGTP-API 6.3")

NO_ERRORS: Final = Rule("J622", "missing-errors", "MUST", "AGIS 7, 9.1 pass 8")
UNNAMED: Final = Rule("J634", "unnamed-error", "MUST", "AGIS 7")
GENERIC: Final = Rule("J635", "generic-error-name", "MUST", "AGIS 7")
REPEATED: Final = Rule("J636", "error-listed-twice", "SHOULD", "AGIS 7", fix="unsafe")
FORM: Final = Rule("J637", "error-name-form", "SHOULD", "AGIS 7", fix="unsafe")
UNDESCRIBED: Final = Rule("J638", "undescribed-errors", "style", "AGIS 7")

_ERROR_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NUMBERED: Final = re.compile(r"(?:e|err|error|code|status|http|failure)?\d{1,6}")
_SEPARATORS: Final = re.compile(r"[_\-.\s]+")
_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST: Final = 100


def check_endpoint(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the names of the declared errors of one endpoint as registration does."""
    seen: set[str] = set()
    for index, name in enumerate(endpoint.error_names):
        if _ERROR_NAME.fullmatch(name) is None:
            message = f"{brief(name)} is not a valid error name: a letter, then letters, digits, '_', '-' and '.'"
            yield ERROR_NAME.at(endpoint, f"/errors/{index}", message, "Write it like room_unavailable.")
        elif name in seen:
            fix = Fix("Remove the second entry", (Change("remove", f"/errors/{index}"),), safe=False)
            message = f"the error {name} is declared twice"
            yield REPEATED_ERROR.at(endpoint, f"/errors/{index}", message, "Remove one.", fix)
        seen.add(name)


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Check the errors of one endpoint as pass 8 does."""
    if not context.agis:
        for index, name in enumerate(declared.endpoint.error_names):
            if _is_generic(name):
                yield _generic(declared, f"/errors/{index}", name)
        return
    errors = declared.written.get("errors")
    if errors is None:
        advice = "Add errors with the names of the possible errors, or errors: [] if there are none."
        yield NO_ERRORS.at(declared.endpoint, "/errors", "there are no errors", advice)
    elif isinstance(errors, list) and errors:
        yield from _check_list(declared, errors)


def _check_list(declared: Declared, errors: list[Any]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    described = False
    for index, error in enumerate(errors):
        at = f"/errors/{index}"
        if isinstance(error, dict):
            name, place = error.get("name"), f"{at}/name"
            described = described or bool(error.get("description"))
        else:
            name, place = error, at
        if isinstance(name, str) and name.strip():
            yield from _check_name(declared, at, place, name, seen)
        elif name is None or name == "":
            yield _unnamed(declared, at, error)
    if not described:
        message = "no error has a description"
        advice = "Write entries with name and description where a name is not sufficient."
        yield UNDESCRIBED.at(declared.endpoint, "/errors", message, advice)


def _check_name(declared: Declared, at: str, place: str, name: str, seen: set[str]) -> Iterator[Diagnostic]:
    if name in seen:
        fix = Fix("Remove the second entry", (Change("remove", at),), safe=False)
        yield REPEATED.at(declared.endpoint, at, f"the error {brief(name)} is listed twice", "Remove one.", fix)
        return
    seen.add(name)
    if _is_generic(name):
        yield _generic(declared, place, name)
    elif _SNAKE.fullmatch(name) is None:
        meant = snake(name[:_LONGEST])
        meant = meant if _SNAKE.fullmatch(meant) is not None else ""
        message, otherwise = f"the error name {brief(name)} is not in snake_case", "Write it like room_unavailable."
        yield FORM.at(declared.endpoint, place, message, *instead(place, meant, otherwise))


def _unnamed(declared: Declared, at: str, error: object) -> Diagnostic:
    advice = "Write name: with what happened, like room_unavailable."
    if isinstance(error, dict) and len(error) == 1 and "description" not in error:
        only = next(iter(error))
        advice = f"Write name: {unquoted(only)}, and the text as description."
    return UNNAMED.at(declared.endpoint, at, "the error has no name", advice)


def _is_generic(name: str) -> bool:
    plain = _SEPARATORS.sub("", name[:_LONGEST]).lower()
    from bespeak.text.language.sentence import listed  # noqa: PLC0415 - a server that is not asked does without English

    return plain in listed("any-failure") or _NUMBERED.fullmatch(plain) is not None


def _generic(declared: Declared, at: str, name: str) -> Diagnostic:
    message = f"the error name {brief(name)} fits any failure"
    return GENERIC.at(declared.endpoint, at, message, "Describe what happened: room_unavailable, invalid_datetime.")
