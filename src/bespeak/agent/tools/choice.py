"""The endpoints that a model is offered: all, or the few that matter for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.tool_name import tool_names
from bespeak.documents.projections.model_tools.style import STYLES
from bespeak.errors import ConfigError

FEW: Final = 10
"""Number of tools that a query chooses unless another one is given."""


def choose(
    endpoints: Sequence[Endpoint], style: str, *, query: str | None = None, limit: int | None = None
) -> list[tuple[str, str]]:
    """Return the keys of the chosen endpoints, for a query the best ones.

    Raises ConfigError if the provider does not take that many tools.
    """
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    if query is not None:
        from bespeak.contract.endpoint_index import EndpointIndex  # noqa: PLC0415 - only queries need the language data

        ranked = EndpointIndex(listed, tool_names(listed)).rank(query)
        listed = [listed[number] for _, number in ranked[: FEW if limit is None else limit]]
    elif limit is not None:
        raise ConfigError("limit needs a query, which says which tools are the best.")
    most = STYLES[style].tools if style in STYLES else None  # a framework may use any provider
    if most is not None and len(listed) > most:
        advice = "choose some with query and limit"
        raise ConfigError(f"{style} takes at most {most} tools in a request; there are {len(listed)}: {advice}.")
    return [endpoint.key for endpoint in listed]
