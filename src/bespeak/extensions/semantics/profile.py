"""A semantic profile, what one interaction means (IoA 5.3), and the verdict about it (IoA 5.4, 11.3)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.rules import ProfileRule
from bespeak.text.diagnostics.diagnostic import brief


class TermBinding(msgspec.Struct, frozen=True):
    """The sense in which an interaction uses a word."""

    term: str
    sense: str  # IRI of a concept


class ProfileContext(msgspec.Struct, frozen=True, kw_only=True):
    """Constraints for the interpretation of a profile."""

    domain: str | None = None  # IRI of the domain of knowledge
    term_bindings: tuple[TermBinding, ...] = ()
    source_lang: str | None = None
    target_lang: str | None = None


class SemanticProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The concepts and the context of one interaction. Every reference is a full IRI."""

    ontology_id: str
    ontology_version: str
    capability_refs: tuple[str, ...]  # capabilities, one or more
    intent_ref: str
    profile_version: str | None = None
    alignment_refs: tuple[str, ...] = ()  # alignment artifacts that were used for mapping
    context: ProfileContext | None = None
    id: str | None = None  # IRI of the profile itself, if it has one


Status = Literal["accept", "renegotiate", "reject"]

_LONGEST: Final = 300
_STATED: Final = frozenset(one.id for one in vars(rules).values() if isinstance(one, ProfileRule) and one.stated)


class Violation(msgspec.Struct, frozen=True):
    """A rule that a document breaks, and where."""

    rule: str  # id of the rule, `I227`
    path: str  # JSON Pointer in the payload, with the member names of the base context
    value: Any  # value at that place; long texts and nested values are shortened
    message: str
    reason: str  # constant text for the answer to a peer

    @classmethod
    def of(cls, rule: ProfileRule, path: str, value: Any = None, other: Any = None) -> Violation:
        shown = value
        if isinstance(value, str):
            shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
        elif value is not None and not isinstance(value, bool | float):
            shown = brief(value)
        return cls(rule.id, path, shown, rule.text(path, value, other), rule.reason)


class Verdict(msgspec.Struct, frozen=True):
    status: Status
    violations: tuple[Violation, ...] = ()

    @property
    def reason(self) -> str:
        """Reason for the answer to a peer; empty if nothing was found.

        A conflict of meaning is named before a missing member: Figure 9 lacks capabilityRefs and does not mention it.
        """
        if not self.violations:
            return ""
        return next((one.reason for one in self.violations if one.rule in _STATED), self.violations[0].reason)


ACCEPTED: Final = Verdict("accept")
