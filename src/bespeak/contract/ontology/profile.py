"""A semantic profile: what one interaction means (IoA 5.3)."""

from __future__ import annotations

import msgspec


class TermBinding(msgspec.Struct, frozen=True):
    """The sense in which an interaction uses a word."""

    term: str
    sense: str
    """IRI of a concept."""


class ProfileContext(msgspec.Struct, frozen=True, kw_only=True):
    """Constraints for the interpretation of a profile."""

    domain: str | None = None
    """IRI of the domain of knowledge."""
    term_bindings: tuple[TermBinding, ...] = ()
    source_lang: str | None = None
    target_lang: str | None = None


class SemanticProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The concepts and the context of one interaction. Every reference is a full IRI."""

    ontology_id: str
    ontology_version: str
    capability_refs: tuple[str, ...]
    """Capabilities, one or more."""
    intent_ref: str
    profile_version: str | None = None
    alignment_refs: tuple[str, ...] = ()
    """Alignment artifacts that were used for mapping."""
    context: ProfileContext | None = None
    id: str | None = None
    """IRI of the profile itself, if it has one."""
