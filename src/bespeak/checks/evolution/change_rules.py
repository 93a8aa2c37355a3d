"""The kinds of contract change: id, name, category, and the inverse of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["added", "removed", "narrowed", "widened", "changed"]
Category = Literal["WIRE", "CONTRACT", "PROSE"]

CATEGORIES: Final[tuple[Category, ...]] = ("WIRE", "CONTRACT", "PROSE")
"""Nested categories: CONTRACT includes WIRE, and PROSE includes everything."""

WHY: Final[dict[Kind, str]] = {
    "added": "Existing callers are not affected, unless a response contains it. Announce it, and let callers adopt it "
    "when they are ready.",
    "removed": "Callers that use it are refused, or wait for something that no longer comes. Deprecate it first, with "
    "a successor, and remove it with a new major version.",
    "narrowed": "For input, calls that worked are refused; for output, callers can rely on more. Keep accepting the "
    "old form for a while, or approve the change and announce it.",
    "widened": "For input, more calls work than before; for output, callers may receive values they do not expect. "
    "Announce a wider output before you release it.",
    "changed": "The same call may have another meaning, and no error reports it. Offer the new meaning beside the old "
    "one, or approve the change with a reason.",
}
"""Effect of each kind of change on callers, and what to do about it."""


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """One kind of change. Its id never changes its meaning."""

    id: str
    name: str
    kind: Kind
    category: Category
    summary: str
    mirror: str
    """Rule that reports the same difference when old and new are swapped."""

    @property
    def why(self) -> str:
        """Effect on callers, and what to do about it."""
        return WHY[self.kind]


def _pair(
    first: tuple[str, str, Kind, str], second: tuple[str, str, Kind, str], category: Category
) -> list[ChangeRule]:
    """Make two rules that mirror each other."""
    return [
        ChangeRule(*first[:3], category, first[3], second[0]),
        ChangeRule(*second[:3], category, second[3], first[0]),
    ]


def _single(rule: str, name: str, category: Category, summary: str) -> list[ChangeRule]:
    """Make a rule that is its own mirror."""
    return [ChangeRule(rule, name, "changed", category, summary, rule)]


RULES: Final[dict[str, ChangeRule]] = {
    rule.id: rule
    for rules in (
        _pair(
            ("C101", "endpoint-removed", "removed", "An endpoint is removed."),
            ("C102", "endpoint-added", "added", "An endpoint is added."),
            "WIRE",
        ),
        _single("C103", "path-parameter-renamed", "WIRE", "A path parameter is renamed."),
        _single("C104", "wording-changed", "PROSE", "A description is reworded."),
        _single("C105", "namespace-changed", "CONTRACT", "The namespace of an endpoint is changed."),
        _single("C106", "handler-kind-changed", "CONTRACT", "An endpoint has another kind of handler."),
        _pair(
            ("C107", "deprecated", "added", "An endpoint is deprecated."),
            ("C108", "deprecation-withdrawn", "removed", "An endpoint is no longer deprecated."),
            "CONTRACT",
        ),
        _single(
            "C109", "deprecation-changed", "CONTRACT", "The end or the successor of a deprecated endpoint is changed."
        ),
        _pair(
            ("C110", "scope-added", "narrowed", "A call needs a further scope."),
            ("C111", "scope-removed", "widened", "A call no longer needs a scope."),
            "WIRE",
        ),
        _pair(
            ("C112", "error-removed", "removed", "A declared error is removed."),
            ("C113", "error-added", "added", "A declared error is added."),
            "WIRE",
        ),
        _pair(
            ("C114", "cost-raised", "narrowed", "A call costs more, or has a cost where it had none."),
            ("C115", "cost-lowered", "widened", "A call costs less, or no longer has a cost."),
            "WIRE",
        ),
        _pair(
            ("C116", "since-removed", "removed", "A call can no longer be limited to changes since a time."),
            ("C117", "since-added", "added", "A call can be limited to changes since a time."),
            "WIRE",
        ),
        _single("C118", "not-compared", "WIRE", "bespeak could not compare a part of the contracts."),
        _pair(
            ("C120", "field-required", "narrowed", "A field that could be left out is required."),
            ("C121", "field-optional", "widened", "A field that was required can be left out."),
            "WIRE",
        ),
        _pair(
            ("C122", "field-removed", "removed", "A field is removed."),
            ("C123", "field-added", "added", "A field is added."),
            "WIRE",
        ),
        _pair(
            ("C124", "type-narrowed", "narrowed", "Fewer types are allowed."),
            ("C125", "type-widened", "widened", "More types are allowed."),
            "WIRE",
        ),
        _single("C126", "type-changed", "WIRE", "Some types are no longer allowed, and others are newly allowed."),
        _pair(
            ("C127", "value-removed", "narrowed", "Fewer values are allowed."),
            ("C128", "value-added", "widened", "More values are allowed."),
            "WIRE",
        ),
        _pair(
            ("C129", "limit-tightened", "narrowed", "A limit of size or value is stricter."),
            ("C130", "limit-loosened", "widened", "A limit of size or value is laxer."),
            "WIRE",
        ),
        _pair(
            ("C131", "constraint-added", "narrowed", "A condition is added."),
            ("C132", "constraint-removed", "widened", "A condition is removed."),
            "WIRE",
        ),
        _single(
            "C133", "constraint-changed", "WIRE", "A condition is changed, and it is unknown which one is stricter."
        ),
        _pair(
            ("C134", "closed", "narrowed", "Undeclared fields are no longer allowed."),
            ("C135", "opened", "widened", "Undeclared fields are allowed."),
            "WIRE",
        ),
        _pair(
            ("C136", "alternative-removed", "narrowed", "An alternative of anyOf or oneOf is removed."),
            ("C137", "alternative-added", "widened", "An alternative of anyOf or oneOf is added."),
            "WIRE",
        ),
        _single("C138", "alternatives-changed", "WIRE", "The parts of anyOf, oneOf or allOf cannot be matched."),
        _single("C139", "default-changed", "CONTRACT", "The default of a field is changed."),
        _single(
            "C140", "annotation-changed", "CONTRACT", "An annotation of a schema is changed; validation ignores it."
        ),
        _single("C141", "not-comparable", "WIRE", "Two schemas differ in a way that cannot be analysed."),
        _pair(
            ("C150", "impact-raised", "narrowed", "The effect of a call is harder to undo."),
            ("C151", "impact-lowered", "widened", "The effect of a call is easier to undo."),
            "CONTRACT",
        ),
        _pair(
            ("C152", "idempotency-lost", "narrowed", "A call can no longer be repeated safely."),
            ("C153", "idempotency-gained", "widened", "A call can be repeated safely."),
            "CONTRACT",
        ),
        _pair(
            ("C154", "confidence-lowered", "narrowed", "The declared confidence is lower."),
            ("C155", "confidence-raised", "widened", "The declared confidence is higher."),
            "CONTRACT",
        ),
        _pair(
            ("C156", "guidance-raised", "narrowed", "Agents need a higher confidence to act alone."),
            ("C157", "guidance-lowered", "widened", "Agents need a lower confidence to act alone."),
            "CONTRACT",
        ),
        _single("C158", "capability-changed", "CONTRACT", "An endpoint belongs to another capability."),
        _single("C159", "state-transition-changed", "CONTRACT", "The state transition of a call is changed."),
        _single("C160", "tool-name-changed", "WIRE", "The MCP tool name of an endpoint is changed."),
        _single("C161", "actor-changed", "CONTRACT", "The actor of a call is changed."),
        _pair(
            ("C170", "policy-tightened", "narrowed", "A policy of the server is stricter."),
            ("C171", "policy-loosened", "widened", "A policy of the server is more permissive."),
            "WIRE",
        ),
        _pair(
            ("C172", "method-refused", "narrowed", "The server refuses a method that it allowed."),
            ("C173", "method-admitted", "widened", "The server allows a method that it refused."),
            "WIRE",
        ),
        _pair(
            ("C178", "redirect-added", "added", "Requests are redirected to another endpoint."),
            ("C179", "redirect-removed", "removed", "Requests are no longer redirected."),
            "WIRE",
        ),
        _single("C180", "redirect-changed", "WIRE", "Requests are redirected to another target."),
        _single("C181", "catalog-changed", "CONTRACT", "Verbs are checked against another version of the catalog."),
        _pair(
            ("C185", "negotiation-ended", "narrowed", "The service no longer negotiates endpoints."),
            ("C186", "negotiation-offered", "widened", "The service negotiates endpoints."),
            "CONTRACT",
        ),
        _pair(
            ("C187", "verb-withdrawn", "removed", "The vocabulary lost a verb."),
            ("C188", "verb-declared", "added", "The vocabulary has a new verb."),
            "CONTRACT",
        ),
        _single("C189", "vocabulary-moved", "CONTRACT", "The vocabulary has another domain or namespace."),
        _pair(
            ("C190", "data-class-removed", "removed", "A class of data can no longer be negotiated for."),
            ("C191", "data-class-added", "added", "A new class of data can be negotiated for."),
            "CONTRACT",
        ),
        _pair(
            ("C192", "data-class-restricted", "narrowed", "A class of data is harder to get."),
            ("C193", "data-class-eased", "widened", "A class of data is easier to get."),
            "CONTRACT",
        ),
        _single("C194", "sensitivity-changed", "CONTRACT", "A class of data has another sensitivity."),
        _single("C199", "more-changes", "WIRE", "There are more changes than are shown."),
    )
    for rule in rules
}
"""All kinds of change by id."""

FINDINGS: Final = {
    "C195": "The version number does not match the changes.",
    "C196": "A list of approvals is not valid.",
    "C197": "An approval has expired.",
    "C198": "An approval matches no change.",
}
"""Findings of a comparison that are not changes."""

FINDINGS_WHY: Final = {
    "C195": "Callers decide by the version number whether an update is safe. Raise it as the message says.",
    "C196": "None of its approvals apply, so every change counts. Fix the entry that the message names.",
    "C197": "Its expiry date has passed. Make the change compatible, or approve it again with a reason.",
    "C198": "It would approve the same change if it were made again. Remove the entry.",
}
"""Explanation of each of these findings."""
