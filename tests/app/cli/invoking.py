"""Commands that run inside the process of a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.testing import CliRunner, Result


def invoking(command: click.Command, *words: str, raises: bool = False, **options: Any) -> Callable[..., Result]:
    """Return a function that runs a command after these words and compares its exit code, if one is given.

    With `raises`, errors of the command are raised.
    """

    def run(*arguments: object, code: int | None = None, **more: Any) -> Result:
        result = CliRunner().invoke(command, [*words, *map(str, arguments)], **options, **more)
        if raises and result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code in (None, result.exit_code), result.output
        return result

    return run
