"""Rules of an artifact while it is read: each is checked where it stands, and all findings come at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.contract.ontology.namespace import is_iri
from bespeak.documents.alignment.rules import BAD_IRI, CONFIDENCE, CONFLICT, TOO_LARGE
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.span import Location

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_RULES: Final = 100_000
_MOST_FINDINGS: Final = 50


class AlignmentDocument(msgspec.Struct, frozen=True):
    """Result of reading: None and an error if the artifact is refused."""

    alignment: Alignment | None
    findings: list[Diagnostic]
    signature: str = ""
    """Token of the signature that the document carries, not yet verified."""


class Place(msgspec.Struct, frozen=True):
    """Place of a rule: a line, or a JSON Pointer."""

    line: int = 0
    pointer: str = ""


class Collector:
    """Findings and rules of one document."""

    def __init__(self, file: str, prefixes: Mapping[str, str] | None = None) -> None:
        self._file = file
        self.prefixes = dict(prefixes or {})
        self.findings: list[Diagnostic] = []
        self._rules: dict[tuple[str, str], MappingRule] = {}
        self._refused = False

    def report(self, rule: Rule, message: str, place: Place, *, warning: bool = False) -> None:
        """Add a finding. Those beyond the limit are not listed, but an error still refuses the artifact."""
        self._refused |= not warning
        if len(self.findings) < _MOST_FINDINGS:
            where = Location(self._file, place.line)
            self.findings.append(rule.found(message, where, place.pointer, severity="warning" if warning else None))

    def iri(self, text: str, what: str, place: Place) -> str:
        """Return an IRI, with its prefix expanded; report a name that is not valid."""
        prefix, colon, rest = text.partition(":")
        found = self.prefixes[prefix] + rest if colon and prefix in self.prefixes else text
        if not is_iri(found):
            self.report(BAD_IRI, f"{what} must be an absolute IRI; got {brief(text)}", place)
        return found

    def add(self, rule: MappingRule, place: Place) -> None:
        """Add a rule. An exact repetition is left out; a repetition that differs is an error."""
        for name, value in (("confidence", rule.confidence), ("score", rule.score), *rule.signals.items()):
            if value is not None and not 0 <= value <= 1:
                self.report(CONFIDENCE, f"{brief(name)} must be from 0 to 1; got {value}", place)
        known = self._rules.setdefault((rule.source, rule.target), rule)
        if known != rule:
            differing = f"{brief(rule.source)} and {brief(rule.target)}"
            self.report(CONFLICT, f"a second rule for {differing} differs from the first", place)
        if len(self._rules) == MOST_RULES + 1:
            self.report(TOO_LARGE, f"an alignment may have {MOST_RULES} rules", place)

    @property
    def is_full(self) -> bool:
        """True if there are more rules than an artifact may have."""
        return len(self._rules) > MOST_RULES

    @property
    def rules(self) -> tuple[MappingRule, ...]:
        """Rules in the order of the document."""
        return tuple(self._rules.values())

    def document(self, alignment: Alignment | None, signature: str = "") -> AlignmentDocument:
        """Return the result; an artifact with errors is refused as a whole."""
        given = alignment.given_confidence if alignment else None
        if given is not None and not 0 <= given <= 1:
            self.report(CONFIDENCE, f"the confidence must be from 0 to 1; got {given}", Place())
        return AlignmentDocument(None if self._refused else alignment, self.findings, signature)


def check_size(data: bytes, file: str) -> Diagnostic | None:
    """Return an error for a document with too many bytes."""
    if len(data) <= MOST_BYTES:
        return None
    return TOO_LARGE.found(f"an alignment may have {MOST_BYTES} bytes; got {len(data)}", Location(file))
