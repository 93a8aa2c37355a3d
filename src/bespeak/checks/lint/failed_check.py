"""A check that raises: reported as a finding, so that the other checks and documents are still reported."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bespeak.text.diagnostics.diagnostic import Diagnostic, Located, Rule, brief, declared_in
from bespeak.text.source.tree import Location

FAILED: Final = Rule("D194", "check-failed", "MUST", "bespeak")

_ADVICE: Final = "This is a bug in bespeak, and all other checks ran. Report it with the document."


def attempt(*calls: tuple[Any, ...], endpoint: Located | None = None) -> Iterator[Diagnostic]:
    """Yield the findings of checks, given with their arguments; of one that raises, a finding with the cause."""
    for check, *arguments in calls:
        try:
            yield from check(*arguments)
        except Exception as error:  # noqa: BLE001 - no rule may stop the others
            ids = list(declared_in(sys.modules[check.__module__]))
            rules = f" of {ids[0]} to {ids[-1]}" if ids else ""
            message = f"the check {check.__module__.rpartition('.')[2]}.{check.__name__}{rules} {describe(error)}"
            yield FAILED.inside("", message, _ADVICE) if endpoint is None else FAILED.at(endpoint, "", message, _ADVICE)


def failed_document(what: str, error: Exception, file: str) -> Diagnostic:
    """Report that a whole document could not be read or fixed."""
    return FAILED.found(f"{what} {describe(error)}", Location(file), advice=_ADVICE)


def describe(error: Exception) -> str:
    """Describe an exception and the line of bespeak that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    return f"failed with {type(error).__name__}: {brief(str(error))}{place}"
