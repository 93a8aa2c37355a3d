"""Judgement of an artifact: whether it may be used, and why not if it is poisoned or downgraded (IoA 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from bespeak.contract.core_ontology import is_iri
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.alignment.draft_json import canonical_json, statement_of
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, read_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.store import RegisterArtifact, compress
from bespeak.extensions.semantics.terms import Ontology, OntologyRef, parse_version, succession_fault
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import PublicKey
from bespeak.state.identity.signed_document import verify_artifact
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.source.tree import Location


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    keys: Mapping[str, PublicKey] = {}  # keys that may sign, by key id
    ranks: Mapping[str, int] = {}  # rank of signers by key id, or 0; a higher one is trusted more
    signed: bool = False  # True if every artifact must be signed: so it is once there are keys


class JudgedAlignment(msgspec.Struct, frozen=True):
    findings: list[Diagnostic]
    alignment: Alignment | None = None  # artifact with its verified signer; None if it is refused
    signature: str = ""

    def command(self, source: str = "") -> RegisterArtifact:
        found = self.alignment
        assert found is not None, "a refused artifact is not registered"
        content = canonical_json(found)
        return RegisterArtifact(
            kind="alignment",
            id=found.id,
            version=found.version,
            digest=statement_of(found).sha256,
            content=compress(content),
            size=len(content),
            refs=(found.source, found.target),
            source=source[:500],
            signer=found.signer,
            signature=self.signature,
        )


NOBODY: Final = Trust()
UNSIGNED: Final = "the artifact is not signed, and `trusted_keys` of [semantic] names the keys that must sign it"


def judge_alignment(
    data: bytes,
    file: str,
    notation: AlignmentNotation | None = None,
    *,
    source: Ontology | None = None,
    target: Ontology | None = None,
    replaces: Alignment | None = None,
    trust: Trust = NOBODY,
    signature: str = "",
    for_registry: bool = False,
    id: str = "",  # noqa: A002 - the word of the draft
    version: str = "",
) -> JudgedAlignment:
    """Read an artifact and judge it against the ontologies in use and the artifact that it replaces.

    A `signature` beside the document comes before one that it carries. `id`, `version` and the versions of the
    ontologies in use are for documents that do not say them.
    """
    document = read_alignment(data, file, notation)
    if document.alignment is None:
        return JudgedAlignment(document.findings)
    read = document.alignment
    alignment = msgspec.structs.replace(
        read,
        id=read.id or id,
        version=read.version or version,
        source=_exact(read.source, source),
        target=_exact(read.target, target),
    )
    token = signature or document.signature
    signer, faults = _verify(alignment, token, trust, file)
    alignment = msgspec.structs.replace(alignment, signer=signer)
    findings = [*document.findings, *faults]
    findings += check_alignment(alignment, file, source=source, target=target)
    findings += check_identity(alignment, file) if for_registry else ()
    findings += _check_order(alignment, replaces, trust, file)
    return JudgedAlignment(findings, None if has_errors(findings) else alignment, token if signer else "")


def check_alignment(
    alignment: Alignment, file: str = "", *, source: Ontology | None = None, target: Ontology | None = None
) -> Iterator[Diagnostic]:
    """Yield what does not fit the ontologies in use: ids, versions, and rules that point to nothing."""
    sides = (("source", alignment.source, source), ("target", alignment.target, target))
    for side, ref, ontology in sides:
        if ontology is None:
            continue
        if ref.id != ontology.id:
            message = f"the {side} ontology must be {brief(ontology.id)}; got {brief(ref.id)}"
            yield rules.OTHER_ONTOLOGY.found(message, Location(file), f"/{side}OntologyId")
        elif ref.version != ontology.version:
            message = f"the version of the {side} ontology must be {brief(ontology.version)}; got {brief(ref.version)}"
            yield rules.OTHER_ONTOLOGY.found(message, Location(file), f"/{side}OntologyVersion")
    count = 0
    for place, rule in enumerate(alignment.rules):
        for (side, _, ontology), iri, member in zip(sides, (rule.source, rule.target), ("from", "to"), strict=True):
            if ontology is not None and iri not in ontology.terms and count < 50:
                count += 1
                message = f"{brief(iri)} is not a term of the {side} ontology {brief(ontology.id)}"
                yield rules.UNKNOWN_TERM.found(message, Location(file), f"/mappingRules/{place}/{member}")


def check_identity(alignment: Alignment, file: str = "") -> Iterator[Diagnostic]:
    """Yield what the registry needs: an IRI, and a version that compares with others."""
    if not is_iri(alignment.id):
        message = f"the id of an alignment must be an absolute IRI; got {brief(alignment.id)}"
        yield rules.ALIGNMENT_IRI.found(message, Location(file), "/id")
    if parse_version(alignment.version) is None:
        message = f"the version must be numbers with points, or a date; got {brief(alignment.version)}"
        yield rules.BAD_ARTIFACT.found(message, Location(file), "/version")


def _exact(ref: OntologyRef, ontology: Ontology | None) -> OntologyRef:
    return ontology.ref if ontology is not None and ref == OntologyRef(ontology.id, "") else ref


def _verify(alignment: Alignment, token: str, trust: Trust, file: str) -> tuple[str, list[Diagnostic]]:
    """Return the signer, or an empty string and the reason."""
    if not token:
        return "", [rules.SIGNATURE.found(UNSIGNED, Location(file), "/signature")] if trust.signed else []
    if not trust.keys and not trust.signed:
        return "", []  # nobody to ask: the artifact counts as unsigned
    signer = verify_artifact(token, statement_of(alignment), trust.keys)
    if isinstance(signer, Fault):
        return "", [rules.SIGNATURE.found(signer.message, Location(file), "/signature")]
    return signer, []


def _check_order(alignment: Alignment, replaces: Alignment | None, trust: Trust, file: str) -> Iterator[Diagnostic]:
    if replaces is None:
        return
    fault = succession_fault(alignment.version, replaces.version)
    if fault is not None:
        yield rules.DOWNGRADE.found(fault, Location(file), "/version")
    if replaces.signer and not alignment.signer:
        message = f"the artifact replaces one that {brief(replaces.signer)} signed, and must be signed too"
        yield rules.DOWNGRADE.found(message, Location(file), "/signature")
    elif trust.ranks.get(alignment.signer, 0) < trust.ranks.get(replaces.signer, 0):
        before = f"{brief(replaces.signer)}, who signed before"
        message = f"the signer {brief(alignment.signer)} is trusted less than {before}"
        yield rules.DOWNGRADE.found(message, Location(file), "/signature")
