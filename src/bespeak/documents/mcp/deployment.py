"""A whole import: the files of a deployment from the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.contract.mcp_server import McpServer
from bespeak.documents.adoption.deployment import Imported, make_deployment
from bespeak.documents.adoption.facade import Origin
from bespeak.documents.adoption.guess import LeftOut
from bespeak.documents.agis.text import write_yaml
from bespeak.documents.mcp.facade import make_facades
from bespeak.documents.mcp.offer import make_offers
from bespeak.documents.mcp.reviewed import Reviewed
from bespeak.documents.mcp.tool_list import ToolList
from bespeak.documents.projections.agis_completion import complete_agis
from bespeak.documents.projections.agis_document import project_agis

DOCUMENT: Final = "service.agis"
COMMAND: Final = "mcp"
"""Subcommand of `bespeak import`."""


def import_tools(
    listed: ToolList,
    server: McpServer,
    notes: Sequence[LeftOut] = (),
    reviewed: Mapping[str, Reviewed] | None = None,
) -> Imported:
    """Make the deployment of a server: endpoint files, and the same contract as an AGIS document (AGIS C.3).

    `notes` lists what its reader skipped or changed. `reviewed` are endpoints of an earlier import by their tools.
    """
    catalog = load_bundled()
    facades, left_out = make_facades(listed, server, catalog, reviewed)
    offered, unusable = make_offers(listed.offers, server, listed.title, catalog, reviewed or {})
    facades, left_out = [*facades, *offered], [*left_out, *unusable]
    origin = Origin(
        command=COMMAND,
        form="the tools of an MCP server",
        title=listed.title,
        version=listed.version,
        description=listed.instructions,
        source=listed.source,
    )
    imported = make_deployment(origin, facades, left_out, notes)
    if facades:
        head = f"# {origin.made_by}. A copy of the endpoint files. After a review, use `bespeak export agis`.\n"
        document = complete_agis(project_agis(imported.service), catalog)
        imported.files[DOCUMENT] = head + write_yaml(document)
    return imported
