"""Context of a document for the rules: catalog, policies in force, and what the author allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Context of a document."""

    catalog: Catalog
    policies: Policies = field(default_factory=Policies)
    recipes: Sequence[Recipe] = ()
    vocabulary: Vocabulary | None = None
    """Vocabulary of the AGIS document that contains the endpoint."""
    level: int = 1
    """Conformance level of AGIS 3.3 that the author targets: 1 or 2."""
    allowed_verbs: frozenset[str] = frozenset()
    """Verbs, in capitals, that the author exempts from passes 2 and 3."""
    agis: bool = True
    """True for an AGIS document; elsewhere the catalog decides which verbs are valid."""
    allowed_segments: frozenset[str] = frozenset()
    """Path segments that the author exempts from pass 4."""
