"""Descriptions of tools from the contract."""

from __future__ import annotations

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import Deprecation
from bespeak.contract.endpoint_names import describe_tool


@pytest.mark.requirement("AGIS-C.2-2", "AGIS-6.2-17")
def test_a_description_is_the_intent_then_the_outcome_and_the_hints() -> None:
    hints = {"party_size": ["number of guests", "for N people"], "when": "next Tuesday"}
    assert describe_tool(endpoint("FIND", "/rooms", parameter_hints=hints), {}).split("\n") == [
        "Find rooms.",
        "Outcome: The rooms are returned.",
        "Hints: party_size = ['number of guests', 'for N people']; when = ['next Tuesday']",
    ]


@pytest.mark.parametrize(
    ("confirm", "line"),
    [(None, "It cannot be undone, so a person confirms it before it runs."), (False, "It cannot be undone.")],
)
def test_a_description_says_what_cannot_be_undone(confirm: bool | None, line: str) -> None:
    assert describe_tool(endpoint("FIND", "/rooms", impact="irreversible", confirm=confirm), {}).endswith(line)


def test_a_deprecated_endpoint_names_its_successor_by_method_and_path_if_it_is_not_a_tool() -> None:
    old = Deprecation(deprecated_in="1.1", successor_method="QUERY")
    assert describe_tool(endpoint("FIND", "/rooms", deprecated=old), {}).endswith(
        "Deprecated since 1.1. Use QUERY /rooms instead."
    )
