"""The figures of the draft, repaired where its text is damaged."""

from __future__ import annotations

from typing import Any, Final

PREFIXES: Final = """@prefix ioa: <https://ex.org/ioa/semantic#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix cs: <https://ex.org/onto/cs#> .
@prefix law: <https://ex.org/onto/law#> .
"""

# The draft writes rdfs:Property, which does not exist.
FIGURE_2: Final = f"""{PREFIXES}
ioa:Domain a rdfs:Class .
ioa:Concept a rdfs:Class .
ioa:inDomain a rdf:Property .
ioa:abbr a rdf:Property .
ioa:preferredAbbr a rdf:Property .
ioa:profileContext a rdf:Property .
"""

FIGURE_3: Final = f"""{PREFIXES}
cs:ComputerScience a ioa:Domain .
cs:LargeLanguageModel a ioa:Concept ;
  ioa:inDomain cs:ComputerScience ;
  ioa:abbr "LLM" .
cs:TechTranslation a ioa:Capability .
cs:TranslateTechDoc a ioa:Intent ;
  ioa:requiresCapability cs:TechTranslation ;
  ioa:appliesToDomain cs:ComputerScience .
"""

FIGURE_4: Final = f"""{PREFIXES}
law:Law a ioa:Domain .
law:MasterOfLaws a ioa:Concept ;
  ioa:inDomain law:Law ;
  ioa:abbr "LLM" ;
  ioa:preferredAbbr "LL.M." .
"""

_CS: Final = {"cs": "https://ex.org/onto/cs#"}
_CONTEXT: Final = ["https://ex.org/ctx", _CS]

FIGURE_5: Final[dict[str, Any]] = {
    "@context": _CONTEXT,
    "type": "ioa:SemanticProfile",
    "ontologyId": "https://ex.org/onto/agent-core",
    "ontologyVersion": "1.0",
    "capabilityRefs": ["cs:TechTranslation"],
    "intentRef": "cs:TranslateTechDoc",
    "profileContext": {
        "domain": "cs:ComputerScience",
        "termBindings": [{"term": "LLM", "sense": "cs:LargeLanguageModel"}],
    },
}

FIGURE_6: Final[dict[str, Any]] = {
    "@context": _CONTEXT,
    "type": "ioa:Capability",
    "id": "cs:TechTranslation",
    "label": "Technical Document Translation",
    "inputs": ["text/plain"],
    "outputs": ["text/plain"],
}

FIGURE_7: Final[dict[str, Any]] = {
    "@context": ["https://ex.org/ctx", {"clinical": "https://y.org/onto/clinical#"}],
    "type": "ioa:SemanticProfile",
    "ontologyId": "https://y.org/onto/clinical",
    "ontologyVersion": "2.1",
    "capabilityRefs": ["clinical:note-summarize"],
    "intentRef": "clinical:summary-intent",
    "alignmentRef": "https://ex.org/align/X-Y-2026",
}

FIGURE_8: Final[dict[str, Any]] = {
    "header": {"task_id": "t-1038", "message_type": "task_request"},
    "semantic": {
        **FIGURE_5,
        "profileContext": {
            "domain": "cs:ComputerScience",
            "sourceLang": "zh",
            "targetLang": "en",
            "termBindings": [{"term": "LLM", "sense": "cs:LargeLanguageModel"}],
        },
    },
    "payload": {"input": "..."},
}

FIGURE_9: Final[dict[str, Any]] = {
    "semantic": {
        "@context": [*_CONTEXT, {"law": "https://ex.org/onto/law#"}],
        "type": "ioa:SemanticProfile",
        "ontologyId": "https://ex.org/onto/agent-core",
        "ontologyVersion": "1.0",
        "intentRef": "cs:TranslateTechDoc",
        "profileContext": {
            "domain": "cs:ComputerScience",
            "termBindings": [{"term": "LLM", "sense": "law:MasterOfLaws"}],
        },
        "validation": {"status": "reject", "reason": "termBinding sense conflicts with domain"},
    }
}

FIGURE_10: Final[dict[str, Any]] = {
    "sourceOntologyId": "https://x.org/onto/rad",
    "targetOntologyId": "https://y.org/onto/clinical",
    "mappingRules": [{"from": "rad:report-summary", "to": "clinical:note-summarize"}],
    "confidence": 0.91,
}
