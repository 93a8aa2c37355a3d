"""What the rules know beside the document: the catalog, the policies in force, what the author allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The surroundings of a document."""

    catalog: Catalog
    policies: Policies = field(default_factory=Policies)
    recipes: Sequence[Recipe] = ()
    vocabulary: Vocabulary | None = None
    """Of the AGIS document the endpoint stands in."""
    level: int = 1
    """The conformance level of AGIS 3.3 the author aims at: 1 or 2."""
    allowed_verbs: frozenset[str] = frozenset()
    """Verbs, in capitals, that passes 2 and 3 accept because the author says so."""
    agis: bool = True
    """Whether the document is an AGIS document; elsewhere the catalog decides which verbs are good."""
    allowed_segments: frozenset[str] = frozenset()
    """Path segments that pass 4 accepts because the author says so."""
