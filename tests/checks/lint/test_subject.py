"""Where an endpoint stands in its document."""

from __future__ import annotations

from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.checks.lint.subject import AGIS_NAMES, Declared
from bespeak.text.diagnostics.diagnostic import Fix, Rule
from bespeak.text.source.tree import Change

RULE = Rule("P999", "test", "MUST", "AGIS 5")


def declared() -> Declared:
    return Declared(make_endpoint("QUERY", "/rooms", echo), "/endpoints/3", {"semantic": {"intent": "x"}}, AGIS_NAMES)


@rows(
    "model, document",
    ("/path", "/endpoints/3/path"),
    ("/semantic/impact", "/endpoints/3/semantic/impact_tier"),
    ("/semantic/impact_x", "/endpoints/3/semantic/impact_x"),
    ("/input_schema", "/endpoints/3/input"),
    ("/input_schema/properties/a", "/endpoints/3/input/properties/a"),
    ("/output_schema/type", "/endpoints/3/output/type"),
    ("", "/endpoints/3"),
)
def test_a_pointer_of_the_model_becomes_one_of_the_document(model: str, document: str) -> None:
    assert declared().pointer(model) == document


def test_a_finding_and_its_fix_move_together() -> None:
    subject = declared()
    fix = Fix("Write it", (Change("replace", "/semantic/impact", "reversible"),))
    placed = subject.place(RULE.at(subject.endpoint, "/semantic/impact", "is wrong", "", fix))
    assert placed.pointer == "/endpoints/3/semantic/impact_tier"
    assert placed.fix is not None
    assert placed.fix.changes[0].at == placed.pointer


def test_the_semantic_block_is_what_was_written() -> None:
    assert declared().semantic == {"intent": "x"}
    broken = Declared(make_endpoint("QUERY", "/rooms", echo), "/endpoint", {"semantic": "none"})
    assert broken.semantic == {}
