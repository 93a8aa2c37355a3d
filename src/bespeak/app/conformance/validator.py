"""Validators for the conformance set: bespeak's own rules, or any command."""

from __future__ import annotations

import shlex
import subprocess
from typing import Final

from bespeak.app.conformance.document_set import Case, Expected, Validation, Validator
from bespeak.checks.lint.context import Context
from bespeak.checks.lint.run import check_text
from bespeak.contract.catalog.bundled import load_bundled
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES

_SECONDS: Final = 60
_PLACE: Final = "{}"


def own_validator() -> Validator:
    """Return a validator that applies the rules of `bespeak lint` without configuration."""
    context = Context(catalog=load_bundled())

    def judge(case: Case) -> Validation:
        text = read_text(case.file, MAX_BYTES)
        found = (text,) if isinstance(text, Diagnostic) else check_text(text, str(case.file), context).findings
        errors = sorted({Expected(each.rule, each.pointer) for each in found if each.severity == "error"})
        return Validation(not errors, tuple(errors))

    return judge


def command_validator(command: str) -> Validator:
    """Return a validator that runs a command with the file in place of `{}` or at its end; exit code 0 accepts."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"the validator {command!r} is not a valid command: {error}") from error
    if not words:
        raise ConfigError("the validator is empty; give a command, such as 'agis-validate {}'")
    if not any(_PLACE in word for word in words):
        words.append(_PLACE)

    def judge(case: Case) -> Validation:
        line = [word.replace(_PLACE, str(case.file)) for word in words]
        try:
            done = subprocess.run(line, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - the user's own command
        except subprocess.TimeoutExpired:
            return Validation(False, note=f" after {_SECONDS} seconds without a result")
        except OSError as error:
            raise ConfigError(f"the validator cannot be run: {words[0]}: {error.strerror or error}") from error
        return Validation(done.returncode == 0)

    return judge
