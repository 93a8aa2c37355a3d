"""Ontologies of the draft's figures, read once for the tests of profiles."""

from __future__ import annotations

from functools import cache

from tests.extensions.semantics.ontology.figures import FIGURE_2, FIGURE_3, FIGURE_4, PREFIXES

from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.terms import Meanings

CLINICAL = f"""{PREFIXES} @prefix clinical: <https://y.org/onto/clinical#> .
clinical:note-summarize a ioa:Capability . clinical:summary-intent a ioa:Intent ;
  ioa:requiresCapability clinical:note-summarize ."""
AI = f"""{PREFIXES} cs:AI a ioa:Domain ; ioa:subDomainOf cs:ComputerScience .
cs:Learning a ioa:Domain ; ioa:subDomainOf cs:AI .
cs:Perceptron a ioa:Concept ; ioa:inDomain cs:Learning .
cs:Translation a ioa:Capability . cs:TechTranslation rdfs:subClassOf cs:Translation .
cs:Study a ioa:Intent ; ioa:appliesToDomain cs:AI ; ioa:requiresCapability cs:TechTranslation .
cs:Homeless a ioa:Concept ."""
TEXTS = (FIGURE_2, FIGURE_3, FIGURE_4, CLINICAL, AI)


@cache
def meanings(*texts: str) -> Meanings:
    """Index ontologies in Turtle; those of the figures by default."""
    found = []
    for number, text in enumerate(texts or TEXTS):
        ontology, _ = read_ontology(text.encode(), f"{number}.ttl", id=f"https://ex.org/onto/{number}", version="1.0")
        assert ontology is not None
        found.append(ontology)
    return Meanings(found)
