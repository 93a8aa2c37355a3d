"""Judgement of a registration: a document becomes a command for the store, or findings say why not (IoA 5.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace, is_iri
from bespeak.extensions.semantics.ontology.canonical import canonical_quads, content_digest
from bespeak.extensions.semantics.ontology.contexts import LIMITS, Contexts, OntologyLimits
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.triples import RdfNotation
from bespeak.extensions.semantics.rules import BAD_IRI, CAPABILITY_RANGE, IDENTITY, TOO_LARGE, VERSION
from bespeak.extensions.semantics.store import MOST_CONTENT, RegisterArtifact, compress
from bespeak.extensions.semantics.terms import Meanings, Ontology
from bespeak.state.identity.artifact_signature import ArtifactStatement
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.source.tree import Location


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
    return f"ioa:hasCapability of {brief(agent)} {CAPABILITY_RANGE.message.format(value=brief(value), other=wanted)}"


_DECISIVE = frozenset({IDENTITY.id, VERSION.id})  # rules that are advice for a reader, and conditions for the registry


class Judged(msgspec.Struct, frozen=True):
    findings: list[Diagnostic]
    ontology: Ontology | None = None
    command: RegisterArtifact | None = None  # command to run, without signer and actor; None if the document is refused

    @property
    def statement(self) -> ArtifactStatement:
        assert self.command is not None, "only a document that is not refused can be signed"
        return ArtifactStatement(self.command.kind, self.command.id, self.command.version, self.command.digest)


def judge_registration(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    id: str = "",  # noqa: A002 - the word of the draft
    version: str = "",
    known: Iterable[Ontology] = (),
    namespace: Namespace = DEFAULT,
    contexts: Contexts | None = None,
    limits: OntologyLimits = LIMITS,
) -> Judged:
    """Read an ontology and prepare its registration. Only a document without errors is registered."""
    ontology, findings = read_ontology(
        data, file, notation, id=id, version=version, namespace=namespace, contexts=contexts, limits=limits
    )
    if ontology is None:
        return Judged(findings)
    findings = [replace(one, severity="error") if one.rule in _DECISIVE else one for one in findings]
    if not is_iri(ontology.id):  # it may come from the caller instead of the document
        message = f"the id of an ontology must be an absolute IRI; got {brief(ontology.id)}"
        findings.append(BAD_IRI.found(message, Location(file)))
    findings += check_consistency(ontology, known, namespace, closed=False)
    if has_errors(findings):
        return Judged(findings, ontology)
    content = canonical_quads(data, file, notation, namespace=namespace, contexts=contexts, limits=limits)
    if isinstance(content, bytes) and len(content) > MOST_CONTENT:
        message = f"canonical N-Quads may have {MOST_CONTENT} bytes; got {len(content)}"
        content = TOO_LARGE.found(message, Location(file))
    if isinstance(content, Diagnostic):
        return Judged([*findings, content], ontology)
    command = RegisterArtifact(
        kind="ontology",
        id=ontology.id,
        version=ontology.version,
        digest=content_digest(content),
        content=compress(content),
        size=len(content),
        source=file[:500],
    )
    return Judged(findings, ontology, command)
