"""Lists with one schema for all items."""

from __future__ import annotations

from bespeak.documents.projections.model_tools.passes import describe_items, join_positions
from bespeak.documents.projections.model_tools.schema import SAYS

DAY = {"type": "string", "description": "First day."}
COUNT = {"$ref": "#/$defs/Count"}
DEFINITIONS = {"Count": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}


def test_every_list_describes_its_items() -> None:
    assert describe_items({"type": "array"}, {}) == {"type": "array", "items": {}}
    assert describe_items({"type": "array", "prefixItems": [DAY]}, {}) == {"type": "array", "prefixItems": [DAY]}
    assert describe_items({"type": "object"}, {}) == {"type": "object"}


def test_positions_become_a_union_and_a_sentence() -> None:
    made = join_positions({"type": "array", "prefixItems": [DAY, COUNT, DAY], "maxItems": 3}, DEFINITIONS)
    said = "The items are, in this order: string (First day), integer or null, string (First day)."
    assert made == {"type": "array", "items": {"anyOf": [DAY, COUNT]}, "maxItems": 3, SAYS: [said]}


def test_items_after_the_positions_may_be_what_the_schema_says() -> None:
    assert join_positions({"type": "array", "prefixItems": [DAY]}, {})["items"] == {}
    assert join_positions({"type": "array", "prefixItems": [DAY], "items": DAY}, {})["items"] == DAY
