"""/ontologies: the registry of ontologies, for agents with the scopes of it (IoA 4, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import MOST_IRI
from bespeak.contract.standard.definition import COUNT, LINE, NAME, TEXT, MethodError, StandardMethod, list_of, one_of
from bespeak.extensions.semantics.alignment.notation import MEDIA_TYPES as ALIGNMENT_TYPES
from bespeak.extensions.semantics.alignment.notation import is_alignment
from bespeak.extensions.semantics.knowledge import AlignmentOffer, OntologyOffer, OntologyRegistry
from bespeak.extensions.semantics.ontology.triples import MEDIA_TYPES
from bespeak.extensions.semantics.rules import DOWNGRADE, SIGNATURE
from bespeak.extensions.semantics.store import Artifact, ArtifactRow, ListArtifacts, ReadArtifact, RegisterArtifact
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import Conflicts, RefusedError, effects, refusal, stateful
from bespeak.text.diagnostics.diagnostic import Diagnostic

PATH: Final = "/ontologies"
READ_SCOPE: Final = "semantic:read"
REGISTER_SCOPE: Final = "semantic:register"
_IRI: Final = {**LINE, "maxLength": MOST_IRI}
_PAGE: Final = 100
_MOST_CONTENT: Final = 1024 * 1024  # most bytes of the content in an answer; beyond, only its size is told
_MOST_FINDINGS: Final = 20
_CODES: Final = {SIGNATURE.id: "signature-refused", DOWNGRADE.id: "alignment-downgrade"}
"""Error of a refused document by the rule of a finding."""
QUERY_ONTOLOGIES: Final = StandardMethod(
    name="QUERY",
    category="semantic",
    description="Lists registered ontologies, alignments and contexts, or returns one with its content.",
    intent="Query which ontologies this server knows, and what they say.",
    outcome="Registered versions with digest, signer and time are returned; nothing is changed.",
    takes={
        "kind?": one_of("ontology", "alignment", "context"),
        "id?": {**_IRI, "description": "IRI of one artifact; its content is returned up to 1 MiB."},
        "version?": NAME,
        "after?": {**COUNT, "maximum": 2**53, "description": "Revision after which artifacts were registered."},
    },
    returns={"artifacts": list_of({"type": "object"}), "next?": COUNT},
    errors=(MethodError("ontology-not-found", status.NOT_FOUND, "The artifact is not registered in that version."),),
    scopes=(READ_SCOPE,),
)
REGISTER_ONTOLOGY: Final = StandardMethod(
    name="REGISTER",
    category="semantic",
    description="Registers one version of an ontology in Turtle, RDF/XML or JSON-LD, or of an alignment in JSON, "
    "SSSOM TSV or Alignment API RDF/XML.",
    intent="Register an ontology or an alignment, so that others can understand profiles that use it.",
    outcome="The version is registered with its digest; a registered version never changes.",
    impact="irreversible",
    idempotent=True,
    takes={
        "document": TEXT,
        "media_type": one_of(*MEDIA_TYPES, *(one for one in ALIGNMENT_TYPES if one not in MEDIA_TYPES)),
        "id?": _IRI,
        "version?": NAME,
        "source?": _IRI,
        "signature?": {**LINE, "maxLength": 16_384},
    },
    returns={"id": {"type": "string"}, "version": NAME, "sha256": NAME, "supersedes": {"type": "string"}},
    errors=(
        MethodError("ontology-refused", status.UNPROCESSABLE, "The document has errors; the findings name them."),
        MethodError("signature-refused", status.FORBIDDEN, "The signature is missing, foreign or for other content."),
        MethodError("version-taken", status.CONFLICT, "The version is registered with other content."),
        MethodError("version-order", status.CONFLICT, "The version is older than the latest, or does not compare."),
        MethodError("alignment-downgrade", status.CONFLICT, "The latest version is newer, or its signer trusted more."),
        MethodError(
            "registry-quota", status.FORBIDDEN, "The agent, or all agents, have registered as much as they may."
        ),
        MethodError("registry-changed", status.CONFLICT, "Another registration was faster; try again."),
    ),
    scopes=(REGISTER_SCOPE,),
    recorded=("id", "version"),
)


@stateful
async def query_ontologies(call: RoutedCall) -> Envelope:
    assert call.server.store is not None
    given = call.input
    if "id" in given:
        command = ReadArtifact(given.get("kind", "ontology"), given["id"], given.get("version"))
        found: Artifact | None = await call.server.store.read(command)
        if found is None:
            raise refusal(QUERY_ONTOLOGIES, "ontology-not-found", "The artifact is not registered in that version.")
        size = len(found.content)
        content = {"content": found.content.decode()} if size <= _MOST_CONTENT else {}
        return Envelope({"artifacts": [{**show(found.row), "bytes": size, **content}]})
    listing = ListArtifacts(given.get("kind"), given.get("after", 0), _PAGE + 1)
    rows: list[ArtifactRow] = await call.server.store.read(listing)
    page = rows[:_PAGE]
    more = {"next": page[-1].revision} if len(rows) > _PAGE else {}
    return Envelope({"artifacts": [show(row) for row in page], **more})


def register_ontology(registry: OntologyRegistry) -> Callable[[RoutedCall], Any]:
    @stateful
    async def register(call: RoutedCall) -> Effects:
        given = call.input
        data, media_type = given["document"].encode(errors="replace"), given["media_type"]
        said = {name: given[name] for name in ("id", "version", "signature") if name in given}
        actor, source = call.agent_id or "", given.get("source", "")
        if not registry.has_room(actor):
            message = "Too many documents of the agent, or of all agents, are waiting; try again later."
            raise refusal(status.UNAVAILABLE, "too-many-waiting", message, retry_after=5)
        judged: RegisterArtifact | list[Diagnostic] | Fault
        # RDF/XML may be either, and says it itself.
        if media_type not in MEDIA_TYPES or (media_type in ALIGNMENT_TYPES and is_alignment(data)):
            offered = AlignmentOffer(data=data, file=source, notation=ALIGNMENT_TYPES[media_type], **said)
            assert call.server.store is not None
            judged = await registry.judge_alignment(offered, actor, call.server.store)
        else:
            offer = OntologyOffer(document=data, notation=MEDIA_TYPES[media_type], actor=actor, source=source, **said)
            judged = await registry.judge(offer)
        if isinstance(judged, Fault):
            fault = f"{judged.message[:1].upper()}{judged.message[1:]}."
            raise refusal(REGISTER_ONTOLOGY, "signature-refused", fault)
        if isinstance(judged, list):
            raise _document_refusal(judged)
        return effects([judged], tell, _conflicts(judged.id))

    def tell(results: Sequence[ArtifactRow]) -> dict[str, Any]:
        row = results[0]
        return {"id": row.id, "version": row.version, "sha256": row.digest, "supersedes": row.supersedes}

    return register


def show(row: ArtifactRow) -> dict[str, Any]:
    """Return what others may know about an artifact. Who registered it is for the operator."""
    shown: dict[str, Any] = msgspec.to_builtins(row)
    del shown["actor"]
    return {**shown, "registered": write_instant(row.registered)}


def _document_refusal(findings: Sequence[Diagnostic]) -> RefusedError:
    told = [
        {"rule": one.rule, "message": one.message, "place": str(one.location or ""), "pointer": one.pointer}
        for one in findings[:_MOST_FINDINGS]
    ]
    message = "The document cannot be registered; the findings say why."
    code = next((_CODES[one.rule] for one in findings if one.rule in _CODES), "ontology-refused")
    return refusal(REGISTER_ONTOLOGY, code, message, findings=told)


def _conflicts(artifact_id: str) -> Conflicts:
    refuse = REGISTER_ONTOLOGY.refuse
    taken = "This version is registered with other content; give the change a new version."
    full = "Agents may register {} artifacts in all, and there is no room left."
    another = "Somebody else has registered this id. Sign this version with a trusted key, or use another id."
    rank = "The latest version is signed by a key that is trusted more; let its owner sign this one."

    def out_of_order(found: Mapping[str, Any]) -> Refused:
        fault = str(found.get("fault") or f"there are {found.get('most')} versions, which is the limit")
        return refuse("version-order", f"{artifact_id[:80]}: {fault}.")

    def over_quota(found: Mapping[str, Any]) -> Refused:
        message = (
            f"One agent may register {found['most']} {found['unit']}, all versions together; "
            f"this one has {found['used']}. Ask the operator for more."
        )
        return refuse("registry-quota", message, **found)

    def unknown(found: Mapping[str, Any]) -> Refused:
        message = f"{found['id'][:200]} {found['version'][:40]} is not registered; register it first."
        return refuse("ontology-refused", message)

    return {
        "version-taken": lambda found: refuse("version-taken", taken, sha256=found["digest"]),
        "version-order": out_of_order,
        "too-many-versions": out_of_order,
        "signature-missing": refuse("signature-refused", "The latest version is signed; sign this one too."),
        "of-another": refuse("signature-refused", another),
        "signer-rank": refuse("signature-refused", rank),
        "quota": over_quota,
        "registry-full": lambda found: refuse("registry-quota", full.format(found["most"]), **found),
        "reference-unknown": unknown,
        "": refuse("registry-changed", "Another registration was faster; try again."),
    }
