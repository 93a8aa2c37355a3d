"""Consistency of an ontology with the core (IoA 5.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bespeak.contract.ontology.meanings import Meanings
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.rules import CAPABILITY_RANGE
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic


def check_consistency(
    ontology: Ontology, known: Iterable[Ontology] = (), namespace: Namespace = DEFAULT, *, closed: bool = True
) -> Iterator[Diagnostic]:
    """Yield what breaks the range of hasCapability; `known` are ontologies that this one may refer to.

    Unless `closed`, terms that none of them declares may be declared elsewhere, and are not judged.
    """
    meanings = Meanings([*known, ontology], namespace)
    for agent, capabilities in ontology.agents.items():
        if agent not in meanings.agents and (closed or agent in meanings):
            yield CAPABILITY_RANGE.found(_message(agent, agent, "an ioa:Agent"))
        for capability in capabilities:
            if capability not in meanings.capabilities and (closed or capability in meanings):
                yield CAPABILITY_RANGE.found(_message(agent, capability, "an ioa:Capability"))


def _message(agent: str, value: str, wanted: str) -> str:
    path = f"ioa:hasCapability of {brief(agent)}"
    return CAPABILITY_RANGE.message.format(path=path, value=brief(value), other=wanted)
