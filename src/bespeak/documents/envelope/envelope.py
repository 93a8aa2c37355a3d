"""A semantic envelope as read: its profile, the validation that it carries, and what is wrong with it (IoA 6.2)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.contract.ontology.profile import ProfileContext, SemanticProfile, TermBinding
from bespeak.contract.ontology.rules import (
    CAPABILITY_REFS,
    INTENT_REF,
    ONTOLOGY_ID,
    ONTOLOGY_VERSION,
    PROFILE_SIZE,
    PROFILE_TYPE,
    PROFILE_VALUE,
    ProfileRule,
)
from bespeak.contract.ontology.verdict import Violation
from bespeak.documents.envelope.limits import MOST_TEXT, MOST_VALUES
from bespeak.documents.envelope.members import Node, Unfit

_IRI: Final = "one absolute IRI"
_LITERAL: Final = "one text or number"
_NODE: Final = "an object"


class Validation(msgspec.Struct, frozen=True):
    """Result of a validation, as a message carries it (Figure 9)."""

    status: str
    reason: str = ""


class Envelope(msgspec.Struct, frozen=True):
    """What was read."""

    profile: SemanticProfile | None = None
    """Profile as far as it could be read, with empty texts for what is missing; None if there is nothing to judge."""
    violations: tuple[Violation, ...] = ()
    """Violations of the rules for members, which no policy accepts."""
    validation: Validation | None = None


def envelope_of(node: Node, profile_type: str) -> Envelope:
    """Make an envelope from the members of its node."""
    found: list[Violation] = []
    types = node.get("@type", ())
    if profile_type not in types:
        found.append(Violation.of(PROFILE_TYPE, "/type", types[0] if len(types) == 1 else (list(types) or None)))
    iri = node.get("@id")
    if isinstance(iri, Unfit):
        found.append(Violation.of(PROFILE_VALUE, "/id", iri.value, _IRI))
        iri = None
    profile = SemanticProfile(
        id=iri,
        ontology_id=_one(node, "ontologyId", found, "", ONTOLOGY_ID) or "",
        ontology_version=_text(node, "ontologyVersion", found, "", ONTOLOGY_VERSION) or "",
        capability_refs=_many(node, "capabilityRefs", found, CAPABILITY_REFS, required=True),
        intent_ref=_one(node, "intentRef", found, "", INTENT_REF) or "",
        profile_version=_text(node, "profileVersion", found) if "profileVersion" in node else None,
        alignment_refs=_many(node, "alignmentRef", found) if "alignmentRef" in node else (),
        context=_context(node, found) if "profileContext" in node else None,
    )
    validation = _validation(node, found) if "validation" in node else None
    return Envelope(profile, tuple(found), validation)


def _context(node: Node, found: list[Violation]) -> ProfileContext | None:
    inner = _one(node, "profileContext", found, "", wanted=_NODE)
    if inner is None:
        return None
    at = "/profileContext"
    bindings = inner.get("termBindings", ())
    if len(bindings) > MOST_VALUES:
        path = f"{at}/termBindings"
        found.append(Violation.of(PROFILE_SIZE, path, len(bindings), f"{MOST_VALUES} values"))
        bindings = ()
    return ProfileContext(
        domain=_one(inner, "domain", found, at) if "domain" in inner else None,
        term_bindings=tuple(_binding(one, found, f"{at}/termBindings/{number}") for number, one in enumerate(bindings)),
        source_lang=_text(inner, "sourceLang", found, at) if "sourceLang" in inner else None,
        target_lang=_text(inner, "targetLang", found, at) if "targetLang" in inner else None,
    )


def _binding(one: Any, found: list[Violation], at: str) -> TermBinding:
    if type(one) is Unfit:
        found.append(Violation.of(PROFILE_VALUE, at, one.value, _NODE))
        return TermBinding("", "")
    term = _text(one, "term", found, at, PROFILE_VALUE)
    return TermBinding(term or "", _one(one, "sense", found, at, PROFILE_VALUE) or "")


def _validation(node: Node, found: list[Violation]) -> Validation | None:
    inner = _one(node, "validation", found, "", wanted=_NODE)
    if inner is None:
        return None
    status, reason = (_text(inner, name, found, "/validation") for name in ("status", "reason"))
    return Validation(status or "", reason or "")


def _one(
    node: Node, name: str, found: list[Violation], at: str, rule: ProfileRule | None = None, *, wanted: str = _IRI
) -> Any:
    """Return the only value of a member, else None. With a rule it is required; the same value twice is one."""
    values = node.get(name, ())
    if len(values) == 1:
        value = values[0]
        if type(value) is not Unfit:
            return value
    elif not values and rule is None:
        return None
    elif len(values) > 1 and all(one == values[0] for one in values) and type(values[0]) is not Unfit:
        return values[0]
    shown = [one.value if type(one) is Unfit else one for one in values]
    found.append(
        Violation.of(rule or PROFILE_VALUE, f"{at}/{name}", shown[0] if len(shown) == 1 else shown or None, wanted)
    )
    return None


def _text(node: Node, name: str, found: list[Violation], at: str = "", rule: ProfileRule | None = None) -> str | None:
    """Return the only literal of a member as a text. A number is its shortest text: the draft allows both (5.3)."""
    values = node.get(name, ())
    if len(values) == 1 and type(values[0]) is str and 0 < len(values[0]) <= MOST_TEXT:
        return values[0]  # what nearly every sender writes
    value = _one(node, name, found, at, rule, wanted=_LITERAL)
    if value is None:
        return None
    try:
        text = value if type(value) is str else str(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = ""
    if not text and rule is not None:
        found.append(Violation.of(rule, f"{at}/{name}", value, _LITERAL))
    elif len(text) > MOST_TEXT:
        found.append(Violation.of(PROFILE_SIZE, f"{at}/{name}", len(text), f"{MOST_TEXT} characters"))
        return None
    return text


def _many(
    node: Node, name: str, found: list[Violation], rule: ProfileRule = PROFILE_VALUE, *, required: bool = False
) -> tuple[str, ...]:
    """Return the IRIs of a member without repetitions."""
    values = node.get(name, ())
    if len(values) > MOST_VALUES:
        found.append(Violation.of(PROFILE_SIZE, f"/{name}", len(values), f"{MOST_VALUES} values"))
        return ()
    if required and not values:
        found.append(Violation.of(rule, f"/{name}", list(values) if name in node else None))
    if len(values) == 1 and type(values[0]) is str:
        return (values[0],)
    for number, one in enumerate(values):
        if type(one) is Unfit:
            found.append(Violation.of(rule, f"/{name}/{number}", one.value, "an absolute IRI"))
    return tuple(dict.fromkeys(one for one in values if type(one) is not Unfit))
