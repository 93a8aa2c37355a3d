"""Repairs of `bespeak lint`: written to their files, printed, or only shown."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Final

import click

from bespeak.checks.lint.project import Mended
from bespeak.documents.files.file_replacement import replace_text
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.diagnostics.report import Finding

_MARK: Final = codecs.BOM_UTF8.decode()


class Fixes:
    """What a run has mended. `given` is the text of standard input, if that is what was looked at."""

    def __init__(self, mended: Sequence[Mended], given: str | None = None) -> None:
        self._given = given
        self._changed = [one for one in mended if one.result.text != one.before]
        self._stuck = {_name(finding) for one in mended for finding in one.result.stuck}

    def show(self, *, quiet: bool) -> bool:
        """Print what would change, and tell whether anything would."""
        for one in self._changed:
            lines = unified_diff(
                one.before.splitlines(), one.result.text.splitlines(), one.shown, f"{one.shown} (fixed)", lineterm=""
            )
            click.echo("\n".join(printable(line) for line in lines))
        if not quiet:
            click.echo(self._counted("Would fix"), err=True)
        return bool(self._changed)

    def write(self) -> None:
        """Put the mended texts in the places of the old ones; what came from standard input goes to the output."""
        if self._given is not None:
            text = next((one.result.text for one in self._changed), self._given)
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())  # as it is: a text stream may write line ends of its own
            sys.stdout.buffer.flush()
            return
        for one in self._changed:
            try:
                replace_text(one.path, _mark(one.path) + one.result.text)
            except OSError as error:
                raise ConfigError(f"{one.path} cannot be written: {error.strerror or error}") from error

    def without_stuck(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, without repairs that have been tried in vain."""
        return [
            replace(finding, diagnostic=replace(finding.diagnostic, fix=None), edits=())
            if _name(finding.diagnostic) in self._stuck
            else finding
            for finding in findings
        ]

    def summary(self, left: int) -> str:
        """What was mended, and what was not."""
        return self._counted("Fixed", f"; {left} remain{'s' * (left == 1)}")

    def _counted(self, did: str, more: str = "") -> str:
        fixed = sum(len(one.result.applied) for one in self._changed)
        files = len(self._changed)
        text = f"{did} {fixed} finding{'s' * (fixed != 1)} in {files} file{'s' * (files != 1)}{more}."
        if not self._stuck:
            return text
        stuck = len(self._stuck)
        which = "1 has a repair" if stuck == 1 else f"{stuck} have repairs"
        return f"{text} {which} that cannot be made as the text is written, or would break something: mend by hand."


def _name(finding: Diagnostic) -> tuple[str, str, str, str]:
    return finding.location.file if finding.location else "", finding.rule, finding.pointer, finding.message


def _mark(path: Path) -> str:
    """The byte order mark, if the file has one: readers leave it out."""
    with path.open("rb") as file:
        return _MARK if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else ""
