"""The kinds of contract change: id, name, category, and the inverse of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["added", "removed", "narrowed", "widened", "changed"]
Category = Literal["WIRE", "CONTRACT", "PROSE"]

CATEGORIES: Final[tuple[Category, ...]] = ("WIRE", "CONTRACT", "PROSE")
"""Nested categories: CONTRACT includes WIRE, and PROSE includes everything."""

WHY: Final[dict[Kind, str]] = {
    "added": "Callers that do not know it go on as before, unless it comes back to them: what they receive may hold "
    "what they never met. Tell them, and let them take it up in their time.",
    "removed": "Whoever uses it is refused, or waits for what no longer comes. Deprecate it first, with a successor, "
    "and remove it with a new major version.",
    "narrowed": "In what callers send, calls that worked are refused; in what they receive, they can rely on more. "
    "Keep accepting the old form for a while, or approve the change and tell them.",
    "widened": "In what callers send, more works than before; in what they receive, they may meet what they are not "
    "prepared for. Widen outputs only with a notice.",
    "changed": "The same call may mean something else, and no error tells. Offer the new meaning beside the old one, "
    "or approve the change with a reason.",
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
            ("C101", "endpoint-removed", "removed", "An endpoint is gone."),
            ("C102", "endpoint-added", "added", "There is a new endpoint."),
            "WIRE",
        ),
        _single("C103", "path-parameter-renamed", "WIRE", "A parameter of the path has another name."),
        _single("C104", "wording-changed", "PROSE", "A text for people or models reads differently."),
        _single("C105", "namespace-changed", "CONTRACT", "An endpoint belongs to another namespace."),
        _single("C106", "handler-kind-changed", "CONTRACT", "An endpoint is answered by another kind of handler."),
        _pair(
            ("C107", "deprecated", "added", "An endpoint is deprecated."),
            ("C108", "deprecation-withdrawn", "removed", "An endpoint is no longer deprecated."),
            "CONTRACT",
        ),
        _single("C109", "deprecation-changed", "CONTRACT", "A deprecated endpoint has another end or successor."),
        _pair(
            ("C110", "scope-added", "narrowed", "A call needs a further scope."),
            ("C111", "scope-removed", "widened", "A call no longer needs a scope."),
            "WIRE",
        ),
        _pair(
            ("C112", "error-removed", "removed", "A declared error is gone."),
            ("C113", "error-added", "added", "There is a new declared error."),
            "WIRE",
        ),
        _pair(
            ("C114", "cost-raised", "narrowed", "A call costs more, or has a cost where it had none."),
            ("C115", "cost-lowered", "widened", "A call costs less, or no longer has a cost."),
            "WIRE",
        ),
        _pair(
            ("C116", "since-removed", "removed", "A call can no longer ask for what has changed since a moment."),
            ("C117", "since-added", "added", "A call can ask for what has changed since a moment."),
            "WIRE",
        ),
        _pair(
            ("C120", "field-required", "narrowed", "A field that could be left out is required."),
            ("C121", "field-optional", "widened", "A field that was required can be left out."),
            "WIRE",
        ),
        _pair(
            ("C122", "field-removed", "removed", "A field is gone."),
            ("C123", "field-added", "added", "There is a new field."),
            "WIRE",
        ),
        _pair(
            ("C124", "type-narrowed", "narrowed", "Fewer types are allowed."),
            ("C125", "type-widened", "widened", "More types are allowed."),
            "WIRE",
        ),
        _single("C126", "type-changed", "WIRE", "Some types are allowed no longer, and others are allowed now."),
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
            ("C131", "constraint-added", "narrowed", "A further condition must hold."),
            ("C132", "constraint-removed", "widened", "A condition need not hold any more."),
            "WIRE",
        ),
        _single("C133", "constraint-changed", "WIRE", "A condition is another one, and which is stricter is unknown."),
        _pair(
            ("C134", "closed", "narrowed", "Fields that no schema names are no longer allowed."),
            ("C135", "opened", "widened", "Fields that no schema names are allowed."),
            "WIRE",
        ),
        _pair(
            ("C136", "alternative-removed", "narrowed", "An alternative of anyOf or oneOf is gone."),
            ("C137", "alternative-added", "widened", "There is a new alternative in anyOf or oneOf."),
            "WIRE",
        ),
        _single("C138", "alternatives-changed", "WIRE", "The parts of anyOf, oneOf or allOf cannot be matched."),
        _single("C139", "default-changed", "CONTRACT", "A field that is left out means something else."),
        _single("C140", "annotation-changed", "CONTRACT", "A remark in a schema that validation ignores is different."),
        _single("C141", "not-comparable", "WIRE", "Two schemas differ in a way that cannot be followed."),
        _pair(
            ("C150", "impact-raised", "narrowed", "The effect of a call is harder to undo."),
            ("C151", "impact-lowered", "widened", "The effect of a call is easier to undo."),
            "CONTRACT",
        ),
        _pair(
            ("C152", "idempotency-lost", "narrowed", "A call must no longer be repeated freely."),
            ("C153", "idempotency-gained", "widened", "A call may be repeated freely."),
            "CONTRACT",
        ),
        _pair(
            ("C154", "confidence-lowered", "narrowed", "The server is less sure of the outcome."),
            ("C155", "confidence-raised", "widened", "The server is surer of the outcome."),
            "CONTRACT",
        ),
        _pair(
            ("C156", "guidance-raised", "narrowed", "An agent should be surer before it acts alone."),
            ("C157", "guidance-lowered", "widened", "An agent may act alone when it is less sure."),
            "CONTRACT",
        ),
        _single("C158", "capability-changed", "CONTRACT", "An endpoint belongs to another capability."),
        _single("C159", "state-transition-changed", "CONTRACT", "A call moves the state in another way."),
        _single("C160", "tool-name-changed", "WIRE", "MCP clients know the endpoint by another name."),
        _single("C161", "actor-changed", "CONTRACT", "Somebody else initiates the call."),
        _pair(
            ("C170", "policy-tightened", "narrowed", "A policy of the server admits less."),
            ("C171", "policy-loosened", "widened", "A policy of the server admits more."),
            "WIRE",
        ),
        _pair(
            ("C172", "method-refused", "narrowed", "The server refuses a method it admitted."),
            ("C173", "method-admitted", "widened", "The server admits a method it refused."),
            "WIRE",
        ),
        _pair(
            ("C178", "redirect-added", "added", "Requests are sent on to another endpoint."),
            ("C179", "redirect-removed", "removed", "Requests are no longer sent on."),
            "WIRE",
        ),
        _single("C180", "redirect-changed", "WIRE", "Requests are sent on to somewhere else."),
        _single("C181", "catalog-changed", "CONTRACT", "Verbs are judged by another version of the catalog."),
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
    "C195": "The version number promises more than the changes keep.",
    "C196": "A list of approvals cannot be used.",
    "C197": "An approval has expired.",
    "C198": "An approval fits no change.",
}
"""Findings of a comparison that are not changes."""

FINDINGS_WHY: Final = {
    "C195": "Callers read from the number whether they may follow without looking. Raise it as the message says.",
    "C196": "Nothing in it is approved, so that every change counts. Repair the entry that is named.",
    "C197": "It was given for a time, and that is over. Make the change compatible, or approve it anew with a reason.",
    "C198": "It would approve the same change when somebody makes it again. Remove the entry.",
}
"""Explanation of each of these findings."""
