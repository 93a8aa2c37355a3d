"""Term tables: what the names of a JSON-LD context mean, compiled once per context."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from bespeak.contract.ontology.namespace import RDFS, Namespace, is_iri
from bespeak.contract.ontology.rules import CONTEXT, UNKNOWN_CONTEXT
from bespeak.contract.ontology.verdict import Violation
from bespeak.documents.envelope.limits import CONTEXT_LIMITS
from bespeak.documents.envelope.members import LABEL, MEMBERS, Node
from bespeak.documents.ontology.contexts import Contexts, inline_contexts
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.rules import REMOTE_CONTEXT
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.printable import printable
from bespeak.text.source.pointer import value_at

_GLOBAL: Final = ("@vocab", "@base", "@language", "@direction")
"""Entries of a context that change the meaning of every value."""
_PLAIN: Final = frozenset({"reverse", "protected", "_prefix", "_term_has_colon", "@id", "@type", "@container"})


Slots = Mapping[str, tuple[str, str, Any]]
"""Name of a member, kind of its values (`@id` and `@type` for the keywords) and, for nodes, the slots of their class,
by the name in the document."""


class TermTable(msgspec.Struct, frozen=True):
    """The meaning of a context, as far as the fast path can use it."""

    slots: Mapping[str, Slots]
    """Slots by class."""
    prefixes: Mapping[str, str]
    types: Mapping[str, str | None]
    """IRIs of the terms that a type may be written with; None for terms that are not IRIs."""
    expanded: dict[str, str] = {}
    """IRIs that were expanded before; bounded."""


class Compiled(msgspec.Struct, frozen=True):
    """Result of compiling a context: refused, usable by pyld only, or with a table for the fast path."""

    violations: tuple[Violation, ...] = ()
    table: TermTable | None = None


def compile_context(context: Any, namespace: Namespace, contexts: Contexts) -> Compiled:
    """Compile the value of `@context`; pyld defines what it means, without a network."""
    document = {"@context": context}
    try:
        inlined = msgspec.json.decode(
            inline_contexts(msgspec.json.encode(document), "", contexts, CONTEXT_LIMITS), type=Node
        )
    except DocumentRefused as refused:
        return Compiled((violation_of(refused.finding, document),))
    active = _process(inlined["@context"])
    if isinstance(active, str):
        return Compiled((Violation.of(CONTEXT, "/@context", f"{printable(active)[:200]}"),))
    terms: Mapping[str, Any] = active["mappings"]
    if not any(one is not None and str(one.get("@id")).startswith(namespace.terms) for one in terms.values()):
        return Compiled((Violation.of(CONTEXT, "/@context", context),))
    if any(name in active for name in _GLOBAL):
        return Compiled()
    return Compiled((), _table(terms, namespace))


def violation_of(finding: Diagnostic, document: Any) -> Violation:
    """Turn the refusal of a context into a violation."""
    if finding.rule == REMOTE_CONTEXT.id and not finding.pointer.endswith("/@import"):
        return Violation.of(UNKNOWN_CONTEXT, finding.pointer, value_at(document, finding.pointer))
    return Violation(finding.rule, finding.pointer, None, f"{finding.pointer}: {finding.message}", finding.message)


@contextmanager
def quiet_processor() -> Iterator[None]:
    """Silence the warnings of pyld, which would be exceptions where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def refuse_loading(url: str, options: Any) -> Any:
    """Refuse to load a document: every context is in the document before pyld sees it."""
    from pyld.jsonld import JsonLdError  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

    raise JsonLdError(f"{url} is not fetched", "jsonld.LoadDocumentError", code="loading document failed")


def _process(context: Any) -> Mapping[str, Any] | str:
    from pyld.jsonld import JsonLdError, JsonLdProcessor  # noqa: PLC0415 - an extra

    processor = JsonLdProcessor()
    options = {"documentLoader": refuse_loading, "processingMode": "json-ld-1.1", "base": None}
    try:
        with quiet_processor():
            active: Mapping[str, Any] = processor.process_context(
                processor.process_context(None, None, options), {"@context": context}, options
            )
    except (JsonLdError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        return str(getattr(error, "code", None) or error)
    return active


def _table(terms: Mapping[str, Any], namespace: Namespace) -> TermTable:
    plain = {term: one for term, one in terms.items() if one and not one["reverse"] and _PLAIN.issuperset(one)}
    plain = {term: one for term, one in plain.items() if one.get("@container") in (None, [], ["@set"])}
    names = {namespace(name): name for members in MEMBERS.values() for name in members} | {f"{RDFS}label": LABEL}
    slots: dict[str, dict[str, tuple[str, str, Any]]] = {name: {} for name in MEMBERS}
    for kind, members in MEMBERS.items():
        found = slots[kind]
        found["@id"], found["@type"] = ("@id", "@id", None), ("@type", "@type", None)
        for term, one in plain.items():
            iri, coerced = one["@id"], one.get("@type")
            member = members.get(names.get(iri, ""))
            if member is not None and coerced == (None if member.value == "literal" else "@id"):
                found[term] = (member.name, member.value, slots.get(member.range))
            elif iri in ("@id", "@type") and coerced is None:
                found[term] = (iri, iri, None)
    return TermTable(
        slots=slots,
        prefixes={term: one["@id"] for term, one in terms.items() if one and one["_prefix"]},
        types={term: one["@id"] if one and is_iri(one["@id"] or "") else None for term, one in terms.items()},
    )
