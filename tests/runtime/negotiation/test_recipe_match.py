"""Which recipe answers a proposal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.negotiating import FIND, LODGINGS

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.recipe import Recipe
from bespeak.runtime.negotiation.evaluation import match_recipe
from bespeak.runtime.negotiation.plan import Plan

PROPOSED = replace(FIND, path="/lodgings")


def match(*recipes: Recipe) -> Plan | None:
    catalog = open_catalog("1.1.0", None)[0]
    assert catalog is not None
    return match_recipe(PROPOSED, recipes, catalog, {FIND.key: FIND}.get)


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ({"name_exact": "FIND"}, True),
        ({"name_exact": "LIST"}, False),
        ({"name_regex": "FI.D"}, True),
        ({"name_regex": "F"}, False),
        ({"category": "discovery"}, True),
        ({"category": "transaction"}, False),
        ({"path_exact": "/lodgings"}, True),
        ({"path_regex": "/lod.*"}, True),
        ({"path_regex": "/rooms"}, False),
        ({"has_parameters": ["city"]}, True),
        ({"has_parameters": ["city", "price"]}, False),
        ({"name_exact": "FIND", "path_exact": "/rooms"}, False),
        ({}, False),
    ],
)
def test_all_conditions_of_a_pattern_must_hold(pattern: dict[str, Any], fits: bool) -> None:
    assert (match(replace(LODGINGS, pattern=pattern)) is not None) is fits


def test_first_recipe_whose_endpoints_exist_is_the_plan() -> None:
    step = replace(LODGINGS.steps[0], path="/nowhere")
    broken = replace(LODGINGS, name="broken", steps=(step,))
    plan = match(broken, LODGINGS)
    assert plan is not None
    assert (plan.recipe, plan.endpoints, plan.is_certain) == (LODGINGS, (FIND,), True)
    assert plan.explanation == ("Calls FIND /rooms.",)
