"""Ontologies as the registry keeps them: canonical N-Quads whose digest is checked before they are used."""

from __future__ import annotations

from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.documents.ontology.canonical import content_digest
from bespeak.documents.ontology.limits import Limits
from bespeak.documents.ontology.reader import read_ontology
from bespeak.protocol.fault import Fault
from bespeak.state.store.commands.ontologies import MOST_CONTENT, Artifact

# What was admitted to the registry is read whole, even if the default limits have become lower since.
_LIMITS = Limits(size=MOST_CONTENT, triples=10_000_000, characters=4 * MOST_CONTENT)


def read_registered(artifact: Artifact, namespace: Namespace = DEFAULT) -> Ontology | Fault:
    """Read a registered ontology, or say why it must not be used."""
    row = artifact.row
    if content_digest(artifact.content) != row.digest:
        return Fault(f"the content of {row.id} {row.version} was changed: it does not have the registered digest")
    ontology, findings = read_ontology(
        *(artifact.content, f"{row.id} {row.version}", "nquads"),
        id=row.id,
        version=row.version,
        namespace=namespace,
        limits=_LIMITS,
    )
    return ontology if ontology is not None else Fault(findings[0].message)
