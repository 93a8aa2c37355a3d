"""Time to validate a semantic envelope whose context is known, compared with pyld and pyshacl, and to negotiate it.

Run it as a script.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import pyshacl
from pyld import jsonld
from pyoxigraph import RdfFormat, parse, serialize
from rdflib import Graph
from report import Goal, table

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.knowledge import Snapshot
from bespeak.extensions.semantics.layer import SemanticLayer
from bespeak.extensions.semantics.ontology.contexts import LIMITS, core_context, inline_contexts, shipped_contexts
from bespeak.extensions.semantics.ontology.publication import profile_shapes, publish_core
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.profile import judge
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Meanings, Ontology
from bespeak.text.reading.json_data import decode_json

VALIDATING: Final = Goal("validating", at_most=15, unit=" us")
NEGOTIATING: Final = Goal("negotiating", at_most=3, unit=" us")
_PREFIXES: Final = f"@prefix ioa: <{DEFAULT.terms}> . @prefix cs: <https://ex.org/onto/cs#> .\n"
_ONTOLOGY: Final = f"""{_PREFIXES}
cs:ComputerScience a ioa:Domain .
cs:LargeLanguageModel a ioa:Concept ; ioa:inDomain cs:ComputerScience ; ioa:abbr "LLM" .
cs:TechTranslation a ioa:Capability .
cs:TranslateTechDoc a ioa:Intent ; ioa:requiresCapability cs:TechTranslation ;
  ioa:appliesToDomain cs:ComputerScience .
"""
_ENVELOPE: Final[dict[str, Any]] = {
    "@context": [DEFAULT.context, {"cs": "https://ex.org/onto/cs#"}],
    "type": "ioa:SemanticProfile",
    "ontologyId": DEFAULT.core,
    "ontologyVersion": "1.0",
    "capabilityRefs": ["cs:TechTranslation"],
    "intentRef": "cs:TranslateTechDoc",
    "profileContext": {
        "domain": "cs:ComputerScience",
        "sourceLang": "zh",
        "targetLang": "en",
        "termBindings": [{"term": "LLM", "sense": "cs:LargeLanguageModel"}],
    },
}


def measure() -> bool:
    """Print the processor time of each validator on the same bytes; return True if the goal is met."""
    data = json.dumps(_ENVELOPE).encode()
    ontology, _ = read_ontology(_ONTOLOGY.encode(), "cs.ttl", id="https://ex.org/onto/cs", version="1.0")
    assert ontology is not None
    meanings, reader = Meanings([ontology]), EnvelopeReader()

    def ours(text: bytes = data) -> str:
        envelope = reader.parse(decode_json(text))
        return judge(envelope.profile, meanings, found=envelope.violations).status

    other = data.replace(b'"type":', b'"cs:note": "x", "type":')  # an extension: pyld reads it
    hostile = data.replace(b"cs:LargeLanguageModel", b"cs:TechTranslation")
    assert (ours(), ours(other), ours(hostile)) == ("accept", "accept", "reject")
    figures = {
        "bespeak, known context": _cost(ours, 20_000),
        "bespeak, rejected": _cost(lambda: ours(hostile), 5_000),
        "bespeak, through pyld": _cost(lambda: ours(other), 200),
        "pyld, expansion alone": _cost(_expansion(data), 200),
        "pyshacl, ontology resident": _cost(_shacl(data), 20),
    }
    fast = figures["bespeak, known context"]
    rows = [["validator", "us CPU", "times ours"]]
    rows += [[name, f"{cost:,.1f}", f"{cost / fast:,.0f}"] for name, cost in figures.items()]
    print(table(rows))
    print()
    print("  " + VALIDATING.line("validating an envelope with a known context", fast))
    repeated, first = _negotiation(ontology, data)
    print("  " + NEGOTIATING.line(f"negotiating a repeated profile; the first time takes {first:,.0f} us", repeated))
    return VALIDATING.met(fast) and NEGOTIATING.met(repeated)


def _negotiation(ontology: Ontology, data: bytes) -> tuple[float, float]:
    """Return the cost of negotiating a profile that was seen before, and of one that was not."""
    layer = SemanticLayer(SemanticSettings())
    layer.knowledge.snapshot = Snapshot([ontology])
    # An equal profile of another message, so that more than its identity is compared.
    seen, again = (layer.view.reader.parse(decode_json(data)).profile for _ in range(2))
    assert seen is not None
    assert again is not None
    assert layer.negotiate(seen).match == "direct"

    def forgetful() -> object:
        layer.view.outcomes.clear()
        return layer.negotiate(again)

    return _cost(lambda: layer.negotiate(again), 50_000), _cost(forgetful, 2_000)


def _expansion(data: bytes) -> Callable[[], object]:
    inlined = _ENVELOPE["@context"][1]
    return lambda: jsonld.expand({**json.loads(data), "@context": [core_context(), inlined]})


def _shacl(data: bytes) -> Callable[[], object]:
    """Return the usual way: parse into a graph that already has the ontology, validate, and remove it again."""
    graph = Graph()
    for text in (publish_core()["core.ttl"], _ONTOLOGY):
        graph.parse(data=text, format="turtle")
    shapes = Graph().parse(data=profile_shapes(), format="turtle")

    def validate() -> None:
        inlined = inline_contexts(data, "envelope", shipped_contexts(), LIMITS)
        triples = serialize((quad.triple for quad in parse(inlined, RdfFormat.JSON_LD)), format=RdfFormat.N_TRIPLES)
        message = Graph().parse(data=triples, format="nt")
        for triple in message:
            graph.add(triple)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            conforms, _, report = pyshacl.validate(graph, shacl_graph=shapes, inplace=True)
        assert conforms, report
        for triple in message:
            graph.remove(triple)

    return validate


def _cost(work: Callable[[], object], count: int) -> float:
    """Return the least processor time of three runs in microseconds."""
    work()
    times = []
    for _ in range(3):
        started = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - started) / count)
    return min(times) * 1e6


if __name__ == "__main__":
    sys.exit(0 if measure() else 1)
