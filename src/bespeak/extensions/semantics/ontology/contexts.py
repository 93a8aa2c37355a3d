"""JSON-LD contexts: shipped or registered ones are written into a document, and all others are refused (IoA 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec

from bespeak.contract.core_ontology import CLASSES, DEFAULT, PROPERTIES, RDFS, Namespace
from bespeak.extensions.semantics.rules import BAD_CONTEXT, REMOTE_CONTEXT, TOO_LARGE
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.reading.json_data import json_value
from bespeak.text.source.pointer import child, pointer
from bespeak.text.source.tree import Location


class DocumentRefused(Exception):
    """A document cannot be read further."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(str(finding))
        self.finding = finding


class OntologyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Most of everything in one ontology. Time is bounded by the work: bytes, triples and characters."""

    size: int = 32 * 1024 * 1024  # bytes of the document
    triples: int = 250_000
    characters: int = 128 * 1024 * 1024  # of all terms together: prefixes and entities make short documents long
    depth: int = 64  # nesting of elements, objects and lists: parsers are recursive
    attributes: int = 256  # attributes of an element, with its namespaces: the parser compares each with all others
    triple_terms: int = 256  # occurrences of `<<`, which nests triples in triples
    label: int = 1_000  # characters of a label or a comment
    labels: int = 100  # labels, synonyms or other values of one property of a term
    contexts: int = 32  # JSON-LD contexts in one document
    context_terms: int = 2_000  # terms of all inline contexts together


LIMITS: Final = OntologyLimits()
Contexts = Mapping[str, Any]  # definitions of known contexts by their IRIs: the value that stands behind `@context`

# Keywords that may be entries of a context (JSON-LD 1.1, 9.15); @import would fetch.
_ENTRIES: Final = frozenset({"@version", "@vocab", "@base", "@language", "@direction", "@protected", "@propagate"})


def inline_contexts(data: bytes, file: str, contexts: Contexts, limits: OntologyLimits) -> bytes:
    """Write every known context into a JSON-LD document, or raise DocumentRefused at a pointer."""
    if 4 * len(data) > limits.size:  # as objects, JSON takes several times the memory of its text
        message = f"a JSON-LD ontology may have {limits.size // 4} bytes; got {len(data)}"
        raise DocumentRefused(TOO_LARGE.found(message, Location(file)))
    document = json_value(data, file)
    if isinstance(document, Diagnostic):
        raise DocumentRefused(document)
    _Inliner(contexts, file, limits).walk(document)
    return msgspec.json.encode(document)


_PARTS: Final = 3  # values of JSON for one triple; the parser keeps all of them


class _Inliner:
    def __init__(self, contexts: Contexts, file: str, limits: OntologyLimits) -> None:
        self._known, self._file, self._limits = contexts, file, limits
        self._contexts = self._terms = 0
        self._protected: dict[str, Any] = {}

    def walk(self, document: Any) -> None:
        """Replace contexts in place. A stack of iterators: neither depth nor width of the input costs memory here."""
        names: list[str | int] = []
        levels: list[Iterator[tuple[str | int | None, Any]]] = [iter([(0, document)])]
        count, most = 0, _PARTS * self._limits.triples
        while levels:
            name, value = next(levels[-1], (None, None))
            if name is None:
                levels.pop()
                if names:
                    names.pop()
                continue
            count += 1
            if not isinstance(value, dict | list) and count <= most:
                continue
            at = [*names, name][1:]  # the first stands for the document itself
            if count > most:
                self._refuse(TOO_LARGE, pointer(at), f"there may be {most} values")
            if len(levels) > self._limits.depth:
                self._refuse(TOO_LARGE, pointer(at), f"objects and lists may be nested {self._limits.depth} deep")
            if isinstance(value, dict) and "@context" in value:
                value["@context"] = self._resolve(value["@context"], pointer([*at, "@context"]))
            names.append(name)
            parts = list(value.items()) if isinstance(value, dict) else enumerate(value or ())
            levels.append(part for part in parts if part[0] != "@context")

    def _resolve(self, context: Any, at: str) -> Any:
        parts = context if isinstance(context, list) else [context]
        found: list[Any] = []
        for number, part in enumerate(parts):
            here = child(at, number) if isinstance(context, list) else at
            self._contexts += 1
            if self._contexts > self._limits.contexts:
                self._refuse(BAD_CONTEXT, here, f"a document may have {self._limits.contexts} contexts")
            if isinstance(part, str):
                found += self._lookup(part, here)
            else:
                self._check(part, here)
                found.append(part)
        return found

    def _lookup(self, iri: str, at: str) -> list[Any]:
        if iri not in self._known:
            message = f"the context {brief(iri)} is neither shipped nor registered"
            self._refuse(REMOTE_CONTEXT, at, message, "Contexts are never fetched. Write it inline, or register it.")
        known = self._known[iri]
        contexts = known if isinstance(known, list) else [known]
        for context in contexts:
            if isinstance(context, dict) and context.get("@protected"):
                self._protected |= {term: one for term, one in context.items() if not term.startswith("@")}
        return contexts

    def _check(self, context: Any, at: str) -> None:
        """Refuse what would fetch, redefine a keyword, or make every node expensive. The parser finds cycles."""
        if context is None and self._protected:
            self._refuse(BAD_CONTEXT, at, "a null context must not remove protected terms")
        if context is None:
            return
        if not isinstance(context, dict):
            self._refuse(BAD_CONTEXT, at, f"a context must be an object or an IRI; got {brief(context)}")
        self._terms += len(context)
        if self._terms > self._limits.context_terms:
            self._refuse(BAD_CONTEXT, at, f"contexts may define {self._limits.context_terms} terms")
        for term, definition in context.items():
            self._check_term(term, definition, child(at, term))

    def _check_term(self, term: str, definition: Any, at: str) -> None:
        known = self._protected.get(term, definition)
        if definition != known and not (isinstance(known, dict) and definition == known["@id"]):
            self._refuse(BAD_CONTEXT, at, f"the term {brief(term)} is protected and must not be redefined")
        if term == "@import":
            self._refuse(REMOTE_CONTEXT, at, "@import would fetch a context")
        if term.startswith("@") and term not in _ENTRIES:
            self._refuse(BAD_CONTEXT, at, f"the keyword {brief(term)} must not be redefined")
        if isinstance(definition, list):
            self._refuse(BAD_CONTEXT, at, f"the definition of {brief(term)} must be an IRI or an object")
        if isinstance(definition, dict) and "@context" in definition:
            self._refuse(BAD_CONTEXT, at, f"the term {brief(term)} must not have a context of its own")
        if isinstance(definition, dict) and any(isinstance(part, dict) for part in definition.values()):
            self._refuse(BAD_CONTEXT, at, f"the definition of {brief(term)} must not be nested")

    def _refuse(self, rule: Rule, at: str, message: str, advice: str = "") -> NoReturn:
        raise DocumentRefused(rule.found(message, Location(self._file), at[:500], advice))


def core_context(namespace: Namespace = DEFAULT) -> dict[str, Any]:
    """Build the base context; contexts behind it extend its protected terms and cannot redefine them."""
    context: dict[str, Any] = {
        "@version": 1.1,
        "@protected": True,
        "ioa": {"@id": namespace.terms, "@prefix": True},
        "id": "@id",
        "type": "@type",
        "label": f"{RDFS}label",
    }
    context |= {name: f"ioa:{name}" for name in CLASSES}
    for name, one in PROPERTIES.items():
        definition = {"@id": f"ioa:{name}"}
        if one.is_object:
            definition["@type"] = "@id"
        if one.many:
            definition["@container"] = "@set"
        context[name] = definition if len(definition) > 1 else f"ioa:{name}"
    return context


@lru_cache(maxsize=8)
def shipped_contexts(namespace: Namespace = DEFAULT) -> Mapping[str, Any]:
    """Return the contexts that are part of this package, by their IRIs."""
    return {namespace.context: core_context(namespace)}
