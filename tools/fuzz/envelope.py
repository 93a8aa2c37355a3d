"""Invariant: the fast path reads a payload as pyld does or hands it over, and no payload makes a reader raise.

Run `python tools/fuzz/envelope.py --seconds 60`. It prints how many payloads it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

from campaign import campaign

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.envelope.expansion import (
    NotPlain,
    compile_context,
    core_node,
    expand_nodes,
    read_plain,
)
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.ontology.contexts import shipped_contexts

READER = EnvelopeReader()
IOA = DEFAULT.terms
CS = "https://ex.org/onto/cs#"
SEED: dict[str, Any] = {
    "@context": [DEFAULT.context, {"cs": CS}],
    "type": "ioa:SemanticProfile",
    "ontologyId": DEFAULT.core,
    "ontologyVersion": "1.0",
    "capabilityRefs": ["cs:TechTranslation"],
    "intentRef": "cs:TranslateTechDoc",
    "profileContext": {
        "domain": "cs:ComputerScience",
        "sourceLang": "zh",
        "termBindings": [{"term": "LLM", "sense": "cs:LargeLanguageModel"}],
    },
    "alignmentRef": "https://ex.org/align/X-Y",
}
VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1.5,
        1e300,
        10**40,
        "",
        " ",
        "cs",
        "cs:",
        "cs:a b",
        "cs:\x00",
        "cs:%00",
        ":x",
        "_:b",
        "@id",
        "@foo",
    ),
    *(
        "relative",
        "#x",
        "//x",
        "cs://x",
        "urn:x",
        "a+b:c",
        "é:x",
        "x" * 3000,
        "ioa:Context",
        "Capability",
        "type",
        "id",
    ),
    *([], [[]], ["cs:a", None], [["cs:a"]], {}, {"@id": "cs:a"}, {"@value": "x"}, {"@value": 1, "@type": "x:y"}),
    *({"@list": ["cs:a"]}, {"@set": ["cs:a"]}, {"@value": None}, {"id": "cs:a", "type": "ioa:Intent"}, {"@graph": []}),
    *({"@value": "x", "@language": "en"}, {"@type": "@json", "@value": {"a": [1]}}, {"term": "x"}, {"@context": {}}),
    *(
        {"@context": None},
        {"@index": "x", "@id": "cs:a"},
        {"@reverse": {"x:y": {}}},
        {"sense": "cs:a"},
        {"@included": []},
    ),
]
CONTEXTS: list[Any] = [
    *({"x": "https://ex.org/x"}, {"x": "https://ex.org/x#", "y": "x:y"}, {"cs": None}, {"cs:a": None}, {"cs:a": CS}),
    *({"caps": {"@id": f"{IOA}capabilityRefs", "@type": "@id"}}, {"caps": f"{IOA}capabilityRefs"}, {"kind": "@type"}),
    *(
        {"caps": {"@id": f"{IOA}capabilityRefs", "@container": "@list"}},
        {"self": "@id"},
        {"@vocab": CS},
        {"@vocab": ""},
    ),
    *({"@base": CS}, {"@language": "en"}, {"@version": 1.1}, {"@propagate": False}, {"@protected": True, "z": "x:z"}),
    *(
        {"a": "b:x", "b": "a:y"},
        {"@import": "x:y"},
        {"@type": "x:y"},
        {"type": "x:y"},
        None,
        7,
        "https://evil.example/",
    ),
    *({"x": {"@reverse": f"{IOA}intentRef"}}, {"n": {"@id": f"{IOA}term", "@language": "de"}}, {"n": "ioa:term"}, []),
    *({"graph": "@graph"}, {"set": "@set"}, {"nest": "@nest"}, {"ioa": "https://ex.org/ioa/semantic#"}, {"": CS}),
    *({"x": {"@id": CS, "@prefix": True}}, {"x": {"@id": "https://ex.org/x", "@prefix": True}}, {"x": {"@id": None}}),
]
KEYS = [
    *SEED,
    *(
        "id",
        "@id",
        "@type",
        "@graph",
        "@nest",
        "@included",
        "@reverse",
        "validation",
        "label",
        "term",
        "sense",
        "inputs",
    ),
    *("caps", "kind", "self", "n", "x", "x:y", "cs:note", "unknown", "ioa:intentRef", f"{IOA}intentRef", "nest", "set"),
]


def mutate(document: dict[str, Any], source: random.Random) -> None:
    """Change a few members or the context of a payload, at any depth."""
    for _ in range(source.randrange(1, 4)):
        target: Any = document
        while source.random() < 0.5:
            inner = [one for one in target.values() if isinstance(one, dict)]
            inner += [
                one for many in target.values() if isinstance(many, list) for one in many if isinstance(one, dict)
            ]
            if not inner:
                break
            target = source.choice(inner)
        choice = source.random()
        if choice < 0.25 and isinstance(document.get("@context"), list):
            document["@context"].append(copy.deepcopy(source.choice(CONTEXTS)))
        elif choice < 0.35 and target:
            del target[source.choice(list(target))]
        elif choice < 0.5 and target:
            key = source.choice(list(target))
            if key != "@context":
                target[key] = [target[key], copy.deepcopy(source.choice(VALUES))]
        else:
            target[source.choice(KEYS)] = copy.deepcopy(source.choice(VALUES))


def try_payload(document: dict[str, Any]) -> None:
    """Check one payload on both paths, and with the readers."""
    before = copy.deepcopy(document)
    if "@context" in document:
        table = compile_context(document["@context"], DEFAULT, shipped_contexts()).table
        if table is not None:
            for kind in ("SemanticProfile", "Capability"):
                try:
                    fast = read_plain(document, table, kind)
                except NotPlain:
                    continue
                expanded = expand_nodes(document, DEFAULT, shipped_contexts())
                assert isinstance(expanded, list), expanded
                slow = core_node(expanded[0], kind, DEFAULT)
                assert fast == slow, (fast, slow)
    envelope = READER.parse(document)
    assert envelope.profile is not None or envelope.violations
    assert all(one.rule and one.message and len(one.message) < 1_000 for one in envelope.violations)
    READER.parse_registration(document)
    assert document == before


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated payload."""
    document = copy.deepcopy(SEED)
    mutate(document, source)
    noted.append(document)
    try_payload(document)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
