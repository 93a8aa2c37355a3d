"""Writer of semantic envelopes (IoA 6.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.extensions.semantics.ontology.contexts import core_context
from bespeak.extensions.semantics.profile import ProfileContext, SemanticProfile

_DELIMITERS: Final = frozenset(":/?#[]@")  # last characters of a namespace that JSON-LD accepts as a prefix


def write_envelope(
    profile: SemanticProfile, prefixes: Mapping[str, str] | None = None, namespace: Namespace = DEFAULT
) -> dict[str, Any]:
    """Write a profile as an envelope; `prefixes` shorten its IRIs where that keeps their meaning."""
    bindings = profile.context.term_bindings if profile.context is not None else ()
    shorten = _Shortener(
        prefixes or {},
        [
            *(profile.ontology_id, *profile.capability_refs, profile.intent_ref, *profile.alignment_refs),
            *(profile.id or "", (profile.context and profile.context.domain) or ""),
            *(binding.sense for binding in bindings),
        ],
        namespace,
    )
    members = {
        "@context": shorten.context,
        "type": "ioa:SemanticProfile",
        "id": shorten(profile.id),
        "ontologyId": shorten(profile.ontology_id),
        "ontologyVersion": profile.ontology_version,
        "profileVersion": profile.profile_version,
        "capabilityRefs": [shorten(one) for one in profile.capability_refs],
        "intentRef": shorten(profile.intent_ref),
        "alignmentRef": _few([shorten(one) for one in profile.alignment_refs]),
        "profileContext": _write_context(profile.context, shorten) if profile.context is not None else None,
    }
    return _present(members)


class _Shortener:
    """Prefixes of one document. A prefix that equals the scheme of an IRI in it would change that IRI."""

    def __init__(self, prefixes: Mapping[str, str], iris: Iterable[str], namespace: Namespace) -> None:
        used = [one for one in iris if one]
        schemes = {one.partition(":")[0] for one in used}
        reserved = core_context(namespace)
        usable = {name: space for name, space in prefixes.items() if name not in schemes and name not in reserved}
        self._prefixes = {
            name: space
            for name, space in usable.items()
            if space[-1:] in _DELIMITERS and any(_fits(one, space) for one in used)
        }
        self.context: Any = [namespace.context, dict(self._prefixes)] if self._prefixes else namespace.context

    def __call__(self, iri: str | None) -> str | None:
        """Shorten an IRI with the longest namespace."""
        if not iri:
            return iri
        spaces = [one for one in self._prefixes.items() if _fits(iri, one[1])]
        if not spaces:
            return iri
        prefix, space = max(spaces, key=lambda one: len(one[1]))
        return f"{prefix}:{iri[len(space) :]}"


def _fits(iri: str, space: str) -> bool:
    return len(iri) > len(space) and iri.startswith(space) and not iri.startswith("//", len(space))


def _write_context(context: ProfileContext, shorten: _Shortener) -> dict[str, Any]:
    return _present(
        {
            "domain": shorten(context.domain),
            "sourceLang": context.source_lang,
            "targetLang": context.target_lang,
            "termBindings": [{"term": one.term, "sense": shorten(one.sense)} for one in context.term_bindings],
        }
    )


def _few(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != []}
