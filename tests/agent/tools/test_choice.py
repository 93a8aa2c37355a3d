"""The tools that a model is offered."""

from __future__ import annotations

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.agent.tools.tool_list import FEW, choose
from bespeak.errors import ConfigError

ROOMS = endpoint("BOOK", "/room", intent="Book a room for a guest.")
BILLS = endpoint("QUERY", "/invoices", intent="Find the invoices of a guest.")
HIDDEN = endpoint("QUERY", "/invoices/open", intent="Find open invoices.", internal=True)


def test_all_listed_endpoints_are_chosen_without_a_query() -> None:
    assert choose([ROOMS, BILLS, HIDDEN], "openai") == [ROOMS.key, BILLS.key]


def test_a_query_chooses_the_best() -> None:
    assert choose([ROOMS, BILLS, HIDDEN], "openai", query="show me my bills", limit=1) == [BILLS.key]
    many = [endpoint("QUERY", f"/rooms-{number}") for number in range(600)]
    assert len(choose([*many, BILLS], "openai", query="rooms")) == FEW


def test_nothing_is_chosen_for_a_query_that_fits_nothing() -> None:
    assert choose([ROOMS], "openai", query="zzz") == []


@pytest.mark.parametrize("style", ["openai", "openai-responses", "gemini"])
def test_more_tools_than_the_provider_takes_are_refused_with_advice(style: str) -> None:
    many = [endpoint("QUERY", f"/rooms-{number}") for number in range(129)]
    with pytest.raises(ConfigError, match="at most 128 tools in a request; there are 129: choose some with query"):
        choose(many, style)
    assert len(choose(many, "anthropic")) == len(choose(many, "langchain")) == 129


def test_a_limit_needs_a_query() -> None:
    with pytest.raises(ConfigError, match="limit needs a query"):
        choose([ROOMS], "openai", limit=3)
