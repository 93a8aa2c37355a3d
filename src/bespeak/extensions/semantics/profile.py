"""A semantic profile, what one interaction means (IoA 5.3), and the verdict about it (IoA 5.4, 11.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.rules import ProfileRule
from bespeak.extensions.semantics.terms import Meanings, Term
from bespeak.text.diagnostics.diagnostic import brief


class TermBinding(msgspec.Struct, frozen=True):
    """The sense in which an interaction uses a word."""

    term: str
    sense: str  # IRI of a concept


class ProfileContext(msgspec.Struct, frozen=True, kw_only=True):
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


class Registration(msgspec.Struct, frozen=True):
    """Capabilities that a payload registers (IoA 6.3)."""

    capabilities: tuple[Term, ...] = ()
    agents: Mapping[str, tuple[str, ...]] = {}  # IRIs of capabilities by the IRI of their agent
    violations: tuple[Violation, ...] = ()


class ProfilePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from a violation. Rules for members always reject."""

    consistency: Status = "reject"  # status for a violation of a consistency rule
    rules: Mapping[str, Status] = {}  # status by the id of a consistency rule, before the general one
    strict_domains: bool = False  # True if a concept of a sub-domain is not within a domain

    def status_of(self, violation: Violation) -> Status:
        """Return the status that a violation of a consistency rule leads to."""
        return self.rules.get(violation.rule, self.consistency)


DEFAULT_POLICY: Final = ProfilePolicy()
_RANK: Final[Mapping[Status, int]] = {"accept": 0, "renegotiate": 1, "reject": 2}


def judge(
    profile: SemanticProfile | None,
    meanings: Meanings,
    policy: ProfilePolicy = DEFAULT_POLICY,
    found: Sequence[Violation] = (),
) -> Verdict:
    """Judge a profile. `found` are the violations of its members, which always reject it."""
    broken = _inconsistencies(profile, meanings, strict=policy.strict_domains) if profile is not None else []
    return judge_violations(found, broken, policy)


def judge_violations(always: Iterable[Violation], broken: Iterable[Violation], policy: ProfilePolicy) -> Verdict:
    """Turn violations into a verdict: those of members always reject, those of consistency rules follow the policy."""
    firm, soft = tuple(always), tuple(broken)
    if not firm and not soft:
        return ACCEPTED
    status = "reject" if firm else max((policy.status_of(one) for one in soft), key=_RANK.__getitem__)
    return Verdict(status, firm + soft)


def judge_agents(registration: Registration, meanings: Meanings) -> list[Violation]:
    """Return the capabilities of agents that neither the registration itself nor an ontology declares as such."""
    known = {term.iri for term in registration.capabilities}
    return [
        Violation.of(rules.CAPABILITY_RANGE, "/hasCapability", capability, "an ioa:Capability")
        for capabilities in registration.agents.values()
        for capability in capabilities
        if capability not in known and capability not in meanings.capabilities
    ]


def _inconsistencies(profile: SemanticProfile, meanings: Meanings, *, strict: bool) -> list[Violation]:
    found: list[Violation] = []
    references, intent, context = profile.capability_refs, profile.intent_ref, profile.context
    for number, one in enumerate(references):
        if one not in meanings.capabilities:
            found.append(Violation.of(rules.CAPABILITY_TYPE, f"/capabilityRefs/{number}", one))
    if intent and intent not in meanings.intents:
        found.append(Violation.of(rules.INTENT_TYPE, "/intentRef", intent))
    # A referenced capability covers those below it.
    needed = sorted(meanings.requires.get(intent, frozenset()).difference(references))
    uncovered = (one for one in needed if not any(above in references for above in meanings.ancestors(one)))
    found += [Violation.of(rules.INTENT_CAPABILITIES, "/intentRef", intent, one) for one in uncovered]
    if context is None or context.domain is None:
        return found
    domain, applies = context.domain, meanings.applies_to.get(intent)
    if applies and domain not in applies and not any(meanings.contains(one, domain, strict=strict) for one in applies):
        found.append(Violation.of(rules.INTENT_DOMAIN, "/intentRef", intent, domain))
    for number, binding in enumerate(context.term_bindings):
        sense = binding.sense
        if not sense:
            continue  # a missing sense is a violation already
        within = meanings.in_domain.get(sense) if sense in meanings.concepts else None
        if not within:
            rule = rules.BINDING_DOMAIN
        elif domain not in within and not any(meanings.contains(domain, one, strict=strict) for one in within):
            rule = rules.BINDING_CONFLICT
        else:
            continue
        found.append(Violation.of(rule, f"/profileContext/termBindings/{number}/sense", sense, domain))
    return found
