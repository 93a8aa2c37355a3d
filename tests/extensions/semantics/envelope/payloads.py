"""Generated payloads: mostly well-formed envelopes, with the hostile and unusual mixed in."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

BASE: Final = "https://ex.org/ctx"
SPACES: Final = {"cs": "https://ex.org/onto/cs#", "law": "https://ex.org/onto/law#"}

iris = st.sampled_from(
    [
        *("cs:TechTranslation", "cs:Translation", "cs:TranslateTechDoc", "cs:Study", "cs:LargeLanguageModel"),
        *("cs:ComputerScience", "cs:AI", "cs:Learning", "cs:Perceptron", "cs:Homeless", "law:Law", "law:MasterOfLaws"),
        *("https://ex.org/onto/cs#TechTranslation", "urn:x:y", "cs:Unknown"),
    ]
)
odd_texts = st.sampled_from(
    [
        *("", "cs", "cs:", ":", ":x", "_:b0", "@id", "@type", "@foo", "relative", "#frag", "//host/x", "cs://x"),
        *("a b:c", "cs:a\u0000b", "cs:%0Ax", "Capability", "SemanticProfile", "type", "x" * 3000, "cs:é", "a+b:c"),
        *("1:2", "ioa:x"),
    ]
)
odd: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | odd_texts | iris,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@id", "@value", "@type", "@list", "@set", "@graph", "id", "type", "term", "sense", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=4,
)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return mostly good values and some odd ones."""
    return st.integers(0, 24).flatmap(lambda drawn: odd if drawn == 0 else good)


def _object(members: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]) -> Any:
    extra = st.integers(0, 15).flatmap(
        lambda drawn: (
            st.dictionaries(st.sampled_from(["cs:note", "unknown", "@graph", "@context", "ioa:abbr", "@id"]), odd)
            if drawn == 0
            else st.just({})
        )
    )
    return st.tuples(st.fixed_dictionaries(members, optional=optional), extra).map(lambda both: both[0] | both[1])


versions = st.sampled_from(["1.0", "2", 1.0, 2, "2026-01-01"])
bindings = _object({"term": mostly(st.just("LLM")), "sense": mostly(iris)}, {"type": mostly(st.just("TermBinding"))})
profile_contexts = _object(
    {},
    {
        "domain": mostly(iris),
        "termBindings": mostly(st.lists(mostly(bindings), max_size=3)),
        "sourceLang": mostly(st.just("zh")),
        "targetLang": mostly(st.just("en")),
    },
)
inline = st.sampled_from(
    [
        {"law": SPACES["law"]},
        {"x": "https://ex.org/x"},
        {"caps": {"@id": "https://ex.org/ioa/semantic#capabilityRefs", "@type": "@id"}},
        {"kind": "@type"},
        {"@vocab": "https://ex.org/v#"},
        {"@language": "en"},
        {"@base": "https://ex.org/base/"},
        {"nothing": None},
        {"cs:Unknown": None},
        {"cs:Unknown": "https://ex.org/other#X"},
    ]
)
contexts = st.lists(inline, max_size=2).map(lambda more: [BASE, {"cs": SPACES["cs"]}, *more])
envelopes = _object(
    {
        "@context": contexts,
        "type": mostly(st.sampled_from(["ioa:SemanticProfile", "SemanticProfile", ["ioa:SemanticProfile"]])),
    },
    {
        "ontologyId": mostly(st.just("https://ex.org/onto/agent-core")),
        "ontologyVersion": mostly(versions),
        "capabilityRefs": mostly(st.lists(mostly(iris), max_size=3) | iris),
        "intentRef": mostly(iris),
        "profileVersion": mostly(versions),
        "alignmentRef": mostly(iris | st.lists(iris, max_size=2)),
        "profileContext": mostly(profile_contexts),
        "validation": mostly(st.just({"status": "reject", "reason": "x"})),
        "id": mostly(iris),
        "caps": mostly(st.lists(iris, max_size=2)),
        "kind": mostly(st.just("ioa:SemanticProfile")),
    },
)
