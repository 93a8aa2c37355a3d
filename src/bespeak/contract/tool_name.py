"""Names of endpoints as MCP tools (AGIS 6.2, C.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bespeak.contract.capability_id import LONGEST, capability_id, marked
from bespeak.contract.endpoint import Endpoint

_USABLE: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}")
"""Names that the services of models accept; MCP itself also allows dots and 128 characters."""


def default_tool_name(method: str, path: str) -> str:
    """Return the default name of a tool: method and first segment (AGIS C.2(a))."""
    segment = path.lstrip("/").partition("/")[0].strip("{}").replace("-", "_")
    return f"{method}_{segment}".lower() if segment else method.lower()


def tool_names(endpoints: Sequence[Endpoint]) -> list[str]:
    """Return the name of each endpoint's tool, in order.

    A declared mcp_tool_name comes first, then the default name. If a name is taken or not usable, the endpoint gets
    one that names its whole path. Among equals the earlier endpoint keeps the name, so one that is added at run time
    renames no other.
    """
    names: dict[int, str] = {}
    taken: set[str] = set()
    for wanted in (_declared, _default, capability_id, _marked):
        for number, endpoint in enumerate(endpoints):
            name = wanted(endpoint)
            if number not in names and name not in taken and _USABLE.fullmatch(name):
                names[number] = name
                taken.add(name)
    # What is left describes the same method and path as another one.
    return [names.get(number) or f"{_marked(endpoint)[:50]}_{number}" for number, endpoint in enumerate(endpoints)]


def _marked(endpoint: Endpoint) -> str:
    return marked(capability_id(endpoint), endpoint)


def _declared(endpoint: Endpoint) -> str:
    return endpoint.semantic.mcp_tool_name or ""


def _default(endpoint: Endpoint) -> str:
    return default_tool_name(endpoint.method, endpoint.path)
