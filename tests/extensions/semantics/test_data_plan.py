"""What a name may stand for is decided by the vocabularies, never guessed."""

from __future__ import annotations

from typing import Any

from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.core_ontology import XSD
from bespeak.extensions.semantics.alignment.values import ValueMapping
from bespeak.extensions.semantics.data import DataTranslation, Find, Words
from bespeak.extensions.semantics.terms import Ontology, OntologyRef, Term
from bespeak.extensions.semantics.translation import Translation, TranslationStep

OURS, THEIRS = "https://a.example/a", "https://b.example/b"
NUMBER, ANYTHING = {"type": "number"}, {"type": "object"}


def words(id_: str, *names: str, **labels: str) -> Words:
    """Make a vocabulary of properties; a name with `!` has whole numbers only."""
    terms = {}
    for name in (*names, *labels):
        iri, ranges = f"{id_}#{name.rstrip('!')}", (f"{XSD}integer",) if name.endswith("!") else ()
        label = (labels[name],) if name in labels else ()
        terms[iri] = Term(iri=iri, kind="data_property", labels=label, ranges=ranges)
    return Words(Ontology(id=id_, version="1", terms=terms))


def finding(pairs: dict[str, str], source: str, target: str, values: ValueMapping | None, *, inverted: bool) -> Find:
    def find(iri: str) -> Translation | None:
        name = iri.partition("#")[2]
        if name not in pairs:
            return None
        other, ref = f"{target}#{pairs[name]}", OntologyRef(target, "1")
        common: dict[str, Any] = {"ontology": ref, "relation": "equivalent", "confidence": 0.9}
        step = TranslationStep(
            source=iri, target=other, alignment="x", inverted=inverted, override=False, values=values, **common
        )
        return Translation(iri=other, steps=(step,), **common)

    return find


def planned(
    ours: Words,
    theirs: Words,
    pairs: dict[str, str],
    *,
    takes: dict[str, Any] | None = None,
    gives: dict[str, Any] | None = None,
    values: ValueMapping | None = None,
) -> DataTranslation:
    endpoint = make_endpoint("QUERY", "/x", echo, properties=takes or {}, output={"type": "object", **(gives or {})})
    back = {other: one for one, other in pairs.items()}
    ways = (
        finding(pairs, OURS, THEIRS, values, inverted=False),
        finding(back, THEIRS, OURS, values, inverted=True),
    )
    return DataTranslation(*ways, ours, theirs, endpoint)


def reason(faults: list[Any]) -> str:
    [fault] = faults
    return str(fault.message).partition(": ")[2]


@rows(
    "ours, theirs, name, why",
    (words(OURS, shoe="size", hat="size"), words(THEIRS, "s", "t"), "size", "it may mean s or t"),
    (words(OURS, "size"), words(THEIRS, "s"), "s", f"it is a word of {THEIRS}, and {OURS} does not declare it"),
    (words(OURS, "size"), words(THEIRS, "s"), "size" * 60, f"neither {OURS} nor this endpoint has it"),
)
def test_name_with_several_or_foreign_meanings_is_refused(ours: Words, theirs: Words, name: str, why: str) -> None:
    data = planned(ours, theirs, {"shoe": "s", "hat": "t", "size": "s"}, takes={"s": NUMBER, "t": NUMBER})
    assert reason(data.read({name: 1})[1]) == why


def test_member_with_the_very_name_of_a_term_comes_first() -> None:
    data = planned(
        words(OURS, "goods"), words(THEIRS, "item"), {"goods": "item"}, takes={"items": NUMBER, "item": NUMBER}
    )
    assert data.read({"goods": 1}) == ({"item": 1}, [])
    data = planned(
        words(OURS, "goods"), words(THEIRS, "ITEM"), {"goods": "ITEM"}, takes={"items": NUMBER, "item": NUMBER}
    )
    assert reason(data.read({"goods": 1})[1]) == "it may mean item or items"


def test_outputs_that_the_caller_would_misread_are_known_before_the_call() -> None:
    gives = {"properties": {"speed": NUMBER, "cost": NUMBER, "plain": NUMBER}}
    data = planned(words(OURS, "speed", "price"), words(THEIRS, "cost"), {"price": "cost"}, gives=gives)
    assert [one.path for one in data.missing] == ["/speed"]
    both = {"properties": {"cost": NUMBER, "Costs": NUMBER}}
    data = planned(words(OURS, "price"), words(THEIRS, "cost"), {"price": "cost"}, gives=both)
    assert reason(data.missing) == "another output means price too"


def test_input_that_is_required_and_has_no_counterpart_is_known_before_the_call() -> None:
    endpoint = make_endpoint("QUERY", "/x", echo, properties={"cost": NUMBER}, required=("cost",))
    none = finding({}, OURS, THEIRS, None, inverted=False)
    data = DataTranslation(none, none, words(OURS, "price"), words(THEIRS, "cost"), endpoint)
    assert reason(data.missing[:1]) == f"nothing of {OURS} means {THEIRS}#cost"


def test_objects_that_no_schema_describes_are_translated_inside() -> None:
    data = planned(words(OURS, "price"), words(THEIRS, "cost"), {"price": "cost"})
    output = {"rest": {"rows": [{"cost": 1, "plain": {"cost": 2}}]}}
    assert data.write(output) == ({"rest": {"rows": [{"price": 1, "plain": {"price": 2}}]}}, [])
    deep: Any = 1
    for _ in range(200):
        deep = {"rest": [deep]}
    assert reason(data.write(deep)[1]) == "it is nested more than 32 levels deep"


def test_number_that_must_be_whole_is_not_rounded() -> None:
    given = {"ours": words(OURS, "miles!"), "theirs": words(THEIRS, "km"), "pairs": {"miles": "km"}}
    values = ValueMapping(units=("[mi_i]", "km"))
    data = planned(**given, takes={"km": {"type": "integer"}}, gives={"properties": {"km": NUMBER}}, values=values)
    assert reason(data.read({"miles": 3})[1]) == "3 would be 4.828032, and a whole number is needed"
    assert data.read({"miles": 15625}) == ({"km": 25146}, [])
    assert reason(data.write({"km": 5})[1]).endswith("a whole number is needed")
    assert data.write({"km": 25146}) == ({"miles": 15625}, [])


def test_term_that_both_vocabularies_declare_stands_for_itself() -> None:
    shared = Term(iri="https://schema.example/name", kind="data_property")
    ours, theirs = (
        Words(Ontology(id=one, version="1", terms={**words(one, name).terms, shared.iri: shared}))
        for one, name in ((OURS, "price"), (THEIRS, "cost"))
    )
    fields = {"name": {"type": "string"}, "cost": NUMBER}
    data = planned(ours, theirs, {"price": "cost"}, takes=fields, gives={"properties": fields})
    assert data.missing == []
    assert data.read({"name": "Ada", "price": 1}) == ({"name": "Ada", "cost": 1}, [])
    assert data.write({"name": "Ada", "cost": 1}) == ({"name": "Ada", "price": 1}, [])
    assert data.read_texts({"name": "Ada"}, in_path=True) == ({"name": "Ada"}, [])
