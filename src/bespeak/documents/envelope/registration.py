"""A capability registration as read: capabilities with their constraints, and their agents (IoA 6.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.ontology.namespace import RDFS, Namespace, is_iri
from bespeak.contract.ontology.rules import (
    CAPABILITY_RANGE,
    PROFILE_SIZE,
    PROFILE_VALUE,
    REGISTRATION_CONSTRAINTS,
    REGISTRATION_ID,
    REGISTRATION_TYPE,
)
from bespeak.contract.ontology.term import Term
from bespeak.contract.ontology.verdict import Violation
from bespeak.documents.envelope.expansion import core_node, types_of
from bespeak.documents.envelope.members import LABEL, Node, Unfit

_MOST: Final = 2_000
"""Capabilities of one registration."""


class Registration(msgspec.Struct, frozen=True):
    """What was read."""

    capabilities: tuple[Term, ...] = ()
    agents: Mapping[str, tuple[str, ...]] = {}
    """IRIs of capabilities by the IRI of their agent."""
    violations: tuple[Violation, ...] = ()


def registration_of(expanded: list[Any], namespace: Namespace) -> Registration:
    """Read the capabilities of expanded nodes: at the top, in a graph, or inside of their agents."""
    return _Reading(namespace).read(expanded)


class _Reading:
    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._found: list[Violation] = []
        self._terms: list[Term] = []
        self._agents: dict[str, dict[str, None]] = {}

    def read(self, expanded: list[Any]) -> Registration:
        several = len(expanded) > 1
        declared = {one["@id"]: one for one in expanded if isinstance(one, dict) and isinstance(one.get("@id"), str)}
        for number, one in enumerate(expanded):
            at = f"/@graph/{number}" if several else ""
            types = types_of(one)
            if self._namespace("Agent") in types:
                self._read_agent(one, at, declared)
            if self._namespace("Capability") in types:
                self._read_capability(one, at)
            elif not types:
                self._found.append(Violation.of(REGISTRATION_TYPE, f"{at}/type"))
        if not self._terms and not self._found:
            self._found.append(Violation.of(REGISTRATION_TYPE, "/type"))
        if len(self._terms) > _MOST:
            self._found.append(Violation.of(PROFILE_SIZE, "", len(self._terms), f"{_MOST} capabilities"))
        agents = {agent: tuple(capabilities) for agent, capabilities in self._agents.items()}
        return Registration(tuple(self._terms), agents, tuple(self._found))

    def _read_agent(self, expanded: Mapping[str, Any], at: str, declared: Mapping[str, Any]) -> None:
        agent = expanded.get("@id", "")
        for number, one in enumerate(expanded.get(self._namespace("hasCapability"), ())):
            path = f"{at}/hasCapability/{number}"
            iri = one.get("@id", "")
            types = {*types_of(one), *types_of(declared.get(iri))}
            if "@value" in one or (types and self._namespace("Capability") not in types):
                # A reference to what the payload does not declare is judged with the ontologies.
                self._found.append(Violation.of(CAPABILITY_RANGE, path, iri or one.get("@value"), "an ioa:Capability"))
                continue
            if len(one) > 1:
                self._read_capability(one, path)
            if is_iri(agent) and is_iri(iri):
                self._agents.setdefault(agent, {})[iri] = None

    def _read_capability(self, expanded: Mapping[str, Any], at: str) -> None:
        node = core_node(expanded, "Capability", self._namespace)
        iri = node.get("@id")
        if not isinstance(iri, str):
            self._found.append(Violation.of(REGISTRATION_ID, f"{at}/id", iri.value if iri else None))
            iri = ""
        inputs, outputs = (tuple(self._constraints(node, name, at)) for name in ("inputs", "outputs"))
        for agent in node.get("providedBy", ()):
            if isinstance(agent, dict) and isinstance(agent.get("@id"), str) and iri:
                self._agents.setdefault(agent["@id"], {})[iri] = None
        above = [one.get("@id") for one in expanded.get(f"{RDFS}subClassOf", ()) if isinstance(one, dict)]
        self._terms.append(
            Term(
                iri=iri,
                kind="individual",
                types=tuple(one for one in types_of(expanded) if is_iri(one)),
                labels=tuple(self._texts(node, LABEL, at)),
                inputs=inputs,
                outputs=outputs,
                parents=tuple(one for one in above if isinstance(one, str) and is_iri(one)),
            )
        )

    def _constraints(self, node: Node, name: str, at: str) -> Iterator[str]:
        texts = list(self._texts(node, name, at))
        if not node.get(name):
            self._found.append(Violation.of(REGISTRATION_CONSTRAINTS, f"{at}/{name}", None))
        return iter(texts)

    def _texts(self, node: Node, name: str, at: str) -> Iterator[str]:
        for number, one in enumerate(node.get(name, ())):
            if isinstance(one, Unfit):
                rule = PROFILE_VALUE if name == LABEL else REGISTRATION_CONSTRAINTS
                self._found.append(Violation.of(rule, f"{at}/{name}/{number}", one.value, "a text"))
            else:
                yield one if isinstance(one, str) else str(one)[:100]
