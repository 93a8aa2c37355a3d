"""The fixes of `bespeak lint`: written to files, printed, or shown as a diff."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import unified_diff

import click

from bespeak.checks.lint.project import FixedDocument
from bespeak.documents.replacement import replace_text
from bespeak.errors import ConfigError
from bespeak.terminal.console import plural
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.diagnostics.report import Finding


class Fixes:
    """The fixes of a run. `given` is the text of standard input, if that was checked."""

    def __init__(self, mended: Sequence[FixedDocument], given: str | None = None) -> None:
        self._given = given
        self._changed = [one for one in mended if one.result.text != one.before]
        self._stuck = {_name(finding) for one in mended for finding in one.result.stuck}

    def show(self, *, quiet: bool) -> bool:
        """Print a diff; return True if anything would change."""
        for one in self._changed:
            lines = unified_diff(
                one.before.splitlines(), one.result.text.splitlines(), one.shown, f"{one.shown} (fixed)", lineterm=""
            )
            click.echo("\n".join(printable(line) for line in lines))
        if not quiet:
            click.echo(self._counted("Would fix"), err=True)
        return bool(self._changed)

    def write(self) -> None:
        """Write the fixed files. The fixed text of standard input goes to standard output."""
        if self._given is not None:
            text = next((one.result.text for one in self._changed), self._given)
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())  # bytes: a text stream may translate line ends
            sys.stdout.buffer.flush()
            return
        for one in self._changed:
            try:
                replace_text(one.path, one.result.text)
            except OSError as error:
                raise ConfigError(f"{one.path} cannot be written: {error.strerror or error}") from error

    def without_stuck(self, findings: Sequence[Finding]) -> list[Finding]:
        """Remove the fixes that could not be applied from the findings."""
        return [
            replace(finding, diagnostic=replace(finding.diagnostic, fix=None), edits=())
            if _name(finding.diagnostic) in self._stuck
            else finding
            for finding in findings
        ]

    def summary(self, left: int) -> str:
        return self._counted("Fixed", f"; {left} remain{'s' * (left == 1)}")

    def _counted(self, did: str, more: str = "") -> str:
        fixed = sum(len(one.result.applied) for one in self._changed)
        text = f"{did} {plural(fixed, 'finding')} in {plural(len(self._changed), 'file')}{more}."
        if not self._stuck:
            return text
        stuck = f"{len(self._stuck)} fix{'es' * (len(self._stuck) != 1)}"
        return f"{text} {stuck} could not be applied safely: edit the file by hand."


def _name(finding: Diagnostic) -> tuple[str, str, str, str]:
    return finding.location.file if finding.location else "", finding.rule, finding.pointer, finding.message
