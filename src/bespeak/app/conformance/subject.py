"""The server under test: its manifest, our identity, and requests that must not change anything."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.app.conformance.probe import Exchanged, Send
from bespeak.app.conformance.sample import sample
from bespeak.contract.grammar.path_syntax import Template, parse_template

PROBE_FIELD: Final = "conformance_probe"
"""Field that no endpoint declares. Every input schema is closed, so a request with it must be refused (13.3)."""

PROBE_AGENT: Final = hashlib.sha256(b"bespeak conformance probe").hexdigest()
"""Our Agent-ID where a server accepts any well-formed id."""

PROBE_SCOPE: Final = "conformance:probe"
"""Scope that no endpoint requires."""

_HOSTED_TRIED: Final = 3


class Subject:
    """State that the checks share. Every exchange is recorded, because some checks are about all of them."""

    manifest_answer: Exchanged
    inventory_answer: Exchanged

    def __init__(self, send: Send, agent_id: str | None) -> None:
        self._send = send
        self.agent_id = agent_id
        self.exchanges: list[Exchanged] = []
        self.manifest: Mapping[str, Any] = {}

    @classmethod
    async def meet(cls, send: Send, agent_id: str | None = None) -> Subject:
        """Read the manifest and find an identity that the server accepts."""
        subject = cls(send, agent_id)
        subject.manifest_answer = await subject.send("DISCOVER", "/")
        document = subject.manifest_answer.json
        if subject.manifest_answer.status == 200 and isinstance(document, dict):
            subject.manifest = document
        hosted = [agent.get("agent_id") for agent in objects(subject.manifest.get("hosted_agents"))]
        # A server may accept any well-formed id, only the ids it hosts, or need no id.
        others = [PROBE_AGENT, *(name for name in hosted[:_HOSTED_TRIED] if isinstance(name, str)), None]
        for candidate in [agent_id] if agent_id else others:
            subject.agent_id = candidate
            subject.inventory_answer = await subject.ask("DISCOVER", "/methods")
            if not subject.inventory_answer.refuses_identity:
                break
        return subject

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        agent_id: str | None = None,
        scope: str | None = None,
        task_id: str | None = None,
        media: str = "application/json",
    ) -> Exchanged:
        """Send one request exactly as given, anonymously unless an agent is named."""
        headers: dict[str, str] = {}
        if agent_id is not None:
            headers["Agent-ID"] = agent_id
        if scope is not None:
            headers["Authority-Scope"] = scope
        if task_id is not None:
            headers["Task-ID"] = task_id
        content = b""
        if body is not None:
            headers["Content-Type"] = media
            content = msgspec.json.encode(body)
        seen = await self._send(method, target, headers, content)
        self.exchanges.append(seen)
        return seen

    async def ask(self, method: str, target: str, body: Any = None) -> Exchanged:
        """Send one request with our identity."""
        return await self.send(method, target, body, agent_id=self.agent_id)

    async def call(self, endpoint: Mapping[str, Any], input: Any = None, query: str = "") -> Exchanged:  # noqa: A002 - the draft's word
        """Call an endpoint with the scopes it requires, or with the agent's own where ours are not trusted."""
        target = concrete_path(endpoint) + (f"?{query}" if query else "")
        scopes = strings(endpoint.get("required_scopes")) or [PROBE_SCOPE]
        seen = await self.send(endpoint["method"], target, input, agent_id=self.agent_id, scope=", ".join(scopes))
        if seen.status == 262:
            seen = await self.ask(endpoint["method"], target, input)
        return seen

    @property
    def endpoints(self) -> list[Mapping[str, Any]]:
        """Endpoints of the manifest that have a method and a path."""
        return [
            endpoint
            for endpoint in objects(self.manifest.get("endpoints"))
            if isinstance(endpoint.get("method"), str) and isinstance(endpoint.get("path"), str)
        ]

    @property
    def policies(self) -> Mapping[str, Any]:
        """Policies block; empty if missing."""
        return mapping(self.manifest.get("policies"))

    @property
    def method_policy(self) -> Mapping[str, Any]:
        """Method policy; empty if missing."""
        return mapping(self.policies.get("methods"))


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Return the objects in a list; empty if the value is not a list."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def strings(value: Any) -> list[str]:
    """Return the strings in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def properties(endpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the declared input fields of an endpoint."""
    return mapping(mapping(endpoint.get("input_schema")).get("properties"))


def path_parameters(endpoint: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters in an endpoint's path."""
    parsed = parse_template(endpoint["path"])
    return parsed.parameters if isinstance(parsed, Template) else ()


def concrete_path(endpoint: Mapping[str, Any]) -> str:
    """Return a request path of an endpoint, with a sample value for each parameter."""
    path: str = endpoint["path"]
    for name in path_parameters(endpoint):
        value = sample(mapping(properties(endpoint).get(name)))
        path = path.replace(f"{{{name}}}", quote(str(value if value is not None else "1"), safe=""))
    return path


def is_informational(endpoint: Mapping[str, Any]) -> bool:
    """Return True if the endpoint declares that it changes nothing."""
    return mapping(endpoint.get("semantic")).get("impact") == "informational"


def is_refused_when_empty(endpoint: Mapping[str, Any]) -> bool:
    """Return True if the endpoint requires a field outside its path, so that empty input is refused."""
    required = strings(mapping(endpoint.get("input_schema")).get("required"))
    return bool(set(required) - set(path_parameters(endpoint)))


def is_safe(endpoint: Mapping[str, Any]) -> bool:
    """Return True if input with only the probe field is harmless, even on a server that accepts it."""
    return is_informational(endpoint) or is_refused_when_empty(endpoint)
