"""The tools that a server offers, and what it lists: all of them, or a search if there are too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from bespeak.contract.capability_id import group_of, grouped
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import make_tools, offered_by
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.mcp.capability_search import CapabilitySearch, join_within

_MOST_INSTRUCTIONS: Final = 1_500
"""Characters for the namespaces in the instructions of a server."""
_MOST_VERBS: Final = 3


class Catalog:
    """The tools of one list of endpoints."""

    def __init__(self, endpoints: Sequence[Endpoint], settings: McpSettings) -> None:
        # Names are given before tools are left out, so that a tool has the same name in every toolset.
        every = make_tools(endpoints)
        sets = frozenset(settings.toolsets)
        # Tools that are not listed can be called all the same.
        self.tools = {name: tool for name, tool in every.items() if not sets or group_of(tool.endpoint) in sets}
        self.offers = [endpoint for endpoint in endpoints if endpoint.is_listed and offered_by(endpoint) is not None]
        """Prompts and resources of upstream servers."""
        self.search = CapabilitySearch(self.tools)
        self.is_searched = 0 < settings.tools_listed < len(self.tools)
        """True if the search is listed in place of the tools."""
        self.namespaces = list(grouped(tool.endpoint for tool in every.values()))
        """Namespaces of the service, the largest first."""
        self.missing = sorted(sets.difference(self.namespaces))
        """Toolsets that no endpoint belongs to."""

    @cached_property
    def entries(self) -> list[Mapping[str, Any]]:
        """Entries of tools/list."""
        listed = (self.search.caller, self.search.finder) if self.is_searched else self.tools.values()
        return [tool.entry for tool in listed]

    def instructions(self, name: str) -> str:
        """Tell models how to use the tools of the service with a name."""
        errors = "Results with isError hold an error with a code and a remedy."
        if not self.is_searched:
            return f"Tools of {name}. {errors}"
        groups = grouped(tool.endpoint for tool in self.tools.values())
        named = (f"{group} ({_verbs(members)})" for group, members in groups.items())
        finder, caller = self.search.finder.name, self.search.caller.name
        return (
            f"{name} has {len(self.tools)} capabilities. Find them with {finder}, call them with {caller}. "
            f"{errors} Namespaces, with some of what can be done: {join_within(named, _MOST_INSTRUCTIONS)}."
        )


def _verbs(endpoints: Sequence[Endpoint]) -> str:
    return ", ".join(list(dict.fromkeys(one.method.lower() for one in endpoints))[:_MOST_VERBS])
