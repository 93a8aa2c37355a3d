"""Refusal of a document, raised inside the readers and returned by them as a finding."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import Diagnostic


class DocumentRefused(Exception):
    """A document cannot be read further."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(str(finding))
        self.finding = finding
