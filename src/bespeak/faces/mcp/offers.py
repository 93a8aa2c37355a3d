"""Prompts and resources of upstream MCP servers, as clients of MCP list and find them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import META, offered_by


class Offers:
    """The endpoints that read prompts and resources. The texts are those of the reviewed endpoint, not the server's."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        """Index endpoints. Of several with the same name or URI, the first counts."""
        self.prompts: dict[str, Endpoint] = {}
        self.resources: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            server = offered_by(endpoint)
            if server is not None and server.prompt:
                self.prompts.setdefault(server.prompt, endpoint)
            elif server is not None:
                self.resources.setdefault(server.resource, endpoint)

    def prompt_entries(self, taken: Container[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of prompts/list, without the names that are taken."""
        for name, endpoint in self.prompts.items():
            if name not in taken:
                yield {
                    "name": name,
                    "description": endpoint.description,
                    "arguments": list(_arguments(endpoint.input_schema)),
                    "_meta": {f"{META}endpoint": str(endpoint)},
                }

    @property
    def resource_entries(self) -> Mapping[str, dict[str, Any]]:
        """Entries of resources/list, by URI."""
        return {
            uri: {
                "uri": uri,
                "name": endpoint.path.rpartition("/")[2],
                "description": endpoint.description,
                "_meta": {f"{META}endpoint": str(endpoint)},
            }
            for uri, endpoint in self.resources.items()
        }


def _arguments(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        described = {"description": part["description"]} if "description" in part else {}
        yield {"name": name, **described, "required": name in required}
