"""DISCOVER, DESCRIBE and PROPOSE with a semantic layer (IoA 8, 9), and the registry of ontologies (IoA 4, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import MOST_IRI
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.definition import (
    COUNT,
    LINE,
    METHOD,
    NAME,
    OBJECT,
    PATH,
    TEXT,
    MethodError,
    StandardMethod,
    list_of,
    object_of,
    one_of,
)
from bespeak.contract.standard.floor import read_filter
from bespeak.extensions.semantics import store
from bespeak.extensions.semantics.alignment.notation import MEDIA_TYPES as ALIGNMENT_TYPES
from bespeak.extensions.semantics.alignment.notation import is_alignment
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.knowledge import Offer, OntologyRegistry
from bespeak.extensions.semantics.layer import SemanticLayer, digest_of, own_profile, read_wanted
from bespeak.extensions.semantics.negotiation import SemanticOutcome
from bespeak.extensions.semantics.ontology.triples import MEDIA_TYPES
from bespeak.extensions.semantics.profile import SemanticProfile
from bespeak.extensions.semantics.rules import DOWNGRADE, SIGNATURE
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, may_discover
from bespeak.runtime.handling import effects, handler, refusal, stateful
from bespeak.text.diagnostics.diagnostic import Diagnostic

PROFILE: Final = "semantic_profile"
PARAMETERS: Final[Mapping[str, Any]] = {  # parameters of the control exchange, beside those of the two methods
    f"{PROFILE}?": {
        **OBJECT,
        "description": "Semantic envelope; DESCRIBE also takes only ontologyId and ontologyVersion.",
    },
    "alignments?": {
        **list_of({**LINE, "maxLength": MOST_IRI}, most=20),
        "description": "Candidate alignments, by their IRIs; they take the place of alignmentRef.",
    },
    "endpoint?": {
        **object_of({"method": METHOD, "path": PATH}, closed=True),
        "description": "Endpoint that the profile is meant for.",
    },
}

Handler = Callable[[RoutedCall], Any]


def describing(describe: Handler) -> Handler:

    @handler
    def handle(call: RoutedCall) -> Any:
        if PROFILE not in call.input:
            return describe(call)
        layer: SemanticLayer = call.server.part("semantic")
        endpoint = _endpoint(call)
        _, outcome = _negotiate(layer, call.input, endpoint)
        concepts = () if endpoint is None else endpoint.semantic.concepts
        spoken = [(id_, layer.snapshot.latest(id_)) for id_ in layer.spoken(concepts)]
        own = [{"ontologyId": id_, "ontologyVersion": one.version} for id_, one in spoken if one is not None]
        return Envelope({"semantic": layer.withhold(outcome.document(), call.principal), "ontologies": own})

    return handle


def proposing(propose: Handler) -> Handler:
    """Build the handler of PROPOSE on a server with a semantic layer. Proposals of endpoints stay what they are."""

    def handle(call: RoutedCall) -> Any:
        return _propose_profile(call) if PROFILE in call.input else propose(call)

    return handle


@stateful
def _propose_profile(call: RoutedCall) -> Effects:
    layer: SemanticLayer = call.server.part("semantic")
    profile, outcome = _negotiate(layer, call.input, _endpoint(call))
    if profile is None or outcome.match == "none":
        first = outcome.verdict.violations[0].message if outcome.verdict.violations else "There is no match"
        message = layer.withhold(f"{first}. The task keeps the profile that it has.", call.principal)
        details = layer.withhold(outcome.document(), call.principal)
        raise refusal(status.PROPOSAL_REJECTED, "semantic-proposal-rejected", message, **details)
    owner, task_id = call.agent_id or "", call.request.headers.get(TASK_ID)
    digest, plain = digest_of(profile), msgspec.to_builtins(profile)
    ids = [store.record_id("profile", owner, digest)]
    ids += [] if task_id is None else [store.record_id("task", owner, task_id)]
    for one in ids:
        call.server.part("semantic").remember(owner, one, profile)
    commands = tuple(store.ReplaceProfile(one, owner, digest, plain) for one in ids)

    def result(results: Sequence[store.RecordedProfile]) -> dict[str, Any]:
        negotiated = layer.withhold(outcome.document(), call.principal)
        told = {"profile_id": ids[0], "profile_digest": digest, "semantic": negotiated}
        return told if task_id is None else told | {"task_profile_version": results[-1].version}

    return effects(commands, result, {})  # a profile can always be replaced


def _negotiate(
    layer: SemanticLayer, given: Mapping[str, Any], endpoint: Endpoint | None
) -> tuple[SemanticProfile | None, SemanticOutcome]:
    """Negotiate a proposed envelope; one that only names an ontology is completed with what is not asked."""
    document, alignments = given[PROFILE], given.get("alignments")
    if alignments is not None:
        document = {**document, "alignmentRef": alignments}
    if "@context" not in document and "type" not in document:
        id_, version = document.get("ontologyId"), document.get("ontologyVersion")
        if all(isinstance(text, str) and 0 < len(text) <= MOST_IRI for text in (id_, version)):
            named = {"ontology_id": id_, "ontology_version": version, "alignment_refs": tuple(alignments or ())}
            # Without references there is nothing to record.
            return None, layer.negotiate(SemanticProfile(capability_refs=(), intent_ref="", **named), endpoint)
    return layer.read(document, endpoint)


def _endpoint(call: RoutedCall) -> Endpoint | None:
    named = call.input.get("endpoint")
    if named is None:
        return None
    key = (str(named.get("method")), str(named.get("path"))) if isinstance(named, dict) else ("", "")
    found = call.routes.endpoints.get(key)
    if found is None or found.internal or not may_discover(call):
        message = f"{key[0][:64]} {key[1][:200]} is not an endpoint of this server; DISCOVER /methods lists them."
        raise refusal(status.NOT_FOUND, "endpoint-not-found", message)
    layer: SemanticLayer = call.server.part("semantic")
    return layer.seen_by(found, call.principal)


def discovering(discover: Handler) -> Handler:

    def handle(call: RoutedCall) -> Any:
        answer = discover(call)
        if not isinstance(answer, Envelope) or "candidates" not in answer.result:
            return answer
        layer: SemanticLayer = call.server.part("semantic")
        index = layer.view.index
        endpoints, given = call.routes.endpoints, answer.result["candidates"]
        found_by_words = ((one, endpoints.get(_key(one))) for one in given)
        by_words = [one for one, each in found_by_words if each is None or index.shows(each, call.principal)]
        wanted = read_wanted(call.input.get("criteria"))
        if wanted is None:
            return msgspec.structs.replace(answer, result={"candidates": by_words})
        admits = read_filter(call.input.get("filter", {}), call.server.agents.get(call.agent_id)).admits_endpoint
        operator = call.routes.service.identity.operator
        found = [one for one in index.find(wanted, call.principal) if admits(one.endpoint, operator)]
        known = {one.endpoint.key for one in found}
        others = [_with_profile(call, one) for one in by_words if _key(one) not in known]
        candidates = [*(index.document(one) for one in found), *others][: call.input.get("max_results", 20)]
        return msgspec.structs.replace(answer, result={"candidates": candidates})

    return handle


def _with_profile(call: RoutedCall, candidate: dict[str, Any]) -> dict[str, Any]:
    """Add the profile to call an endpoint with, in the vocabulary of the service itself; words are not a match."""
    endpoint, snapshot = call.routes.endpoints.get(_key(candidate)), call.server.part("semantic").snapshot
    if endpoint is None or snapshot.own is None:
        return candidate
    envelope = write_envelope(own_profile(call.routes.service, endpoint, snapshot.own), namespace=snapshot.namespace)
    return {**candidate, "match": "unmatched", "confidence": 0.0, "semantic": envelope}


def _key(candidate: dict[str, Any]) -> tuple[str, str]:
    return candidate.get("method", ""), candidate.get("path", "")


ONTOLOGIES: Final = "/ontologies"
READ_SCOPE: Final = "semantic:read"
REGISTER_SCOPE: Final = "semantic:register"
_IRI: Final = {**LINE, "maxLength": MOST_IRI}
_PAGE: Final = 100
_MOST_CONTENT: Final = 1024 * 1024  # most bytes of the content in an answer; beyond, only its size is told
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
    given = call.input
    if "id" in given:
        command = store.ReadArtifact(given.get("kind", "ontology"), given["id"], given.get("version"))
        found: store.Artifact | None = await call.store.read(command)
        if found is None:
            raise refusal(QUERY_ONTOLOGIES, "ontology-not-found", "The artifact is not registered in that version.")
        size = len(found.content)
        content = {"content": found.content.decode()} if size <= _MOST_CONTENT else {}
        return Envelope({"artifacts": [{**show(found.row), "bytes": size, **content}]})
    listing = store.ListArtifacts(given.get("kind"), given.get("after", 0), _PAGE + 1)
    rows: list[store.ArtifactRow] = await call.store.read(listing)
    page = rows[:_PAGE]
    more = {"next": page[-1].revision} if len(rows) > _PAGE else {}
    return Envelope({"artifacts": [show(row) for row in page], **more})


def register_ontology(registry: OntologyRegistry) -> Callable[[RoutedCall], Any]:
    @stateful
    async def register(call: RoutedCall) -> Effects:
        given = call.input
        data, media_type, actor = given["document"].encode(errors="replace"), given["media_type"], _actor_of(call)
        said: dict[str, Any] = {name: given[name] for name in ("id", "version", "signature") if name in given}
        said |= {"data": data, "file": given.get("source", ""), "actor": actor}
        if not registry.turns.has_room(actor):
            message = "Too many documents of the agent, or of all agents, are waiting; try again later."
            raise refusal(status.UNAVAILABLE, "too-many-waiting", message, retry_after=5)
        judged: store.RegisterArtifact | list[Diagnostic] | Fault
        # RDF/XML may be either, and says it itself.
        if media_type not in MEDIA_TYPES or (media_type in ALIGNMENT_TYPES and is_alignment(data)):
            judged = await registry.judge_alignment(Offer(notation=ALIGNMENT_TYPES[media_type], **said), call.store)
        else:
            judged = await registry.judge(Offer(notation=MEDIA_TYPES[media_type], **said))
        if isinstance(judged, Fault):
            raise refusal(REGISTER_ONTOLOGY, "signature-refused", f"{judged.message[:1].upper()}{judged.message[1:]}.")
        if isinstance(judged, list):
            told = [
                {"rule": one.rule, "message": one.message, "place": str(one.location or ""), "pointer": one.pointer}
                for one in judged[:20]
            ]
            message = "The document cannot be registered; the findings say why."
            code = next((_CODES[one.rule] for one in judged if one.rule in _CODES), "ontology-refused")
            raise refusal(REGISTER_ONTOLOGY, code, message, findings=told)
        return effects([judged], tell, {reason: _refusal_of(*one, judged.id) for reason, one in _CONFLICTS.items()})

    def tell(results: Sequence[store.ArtifactRow]) -> dict[str, Any]:
        row = results[0]
        return {"id": row.id, "version": row.version, "sha256": row.digest, "supersedes": row.supersedes}

    return register


def _actor_of(call: RoutedCall) -> str:
    """Return the agent that registers; no name of an agent may pass for one of the operator."""
    agent = call.agent_id or "anonymous"
    return f"agent:{agent}" if agent.startswith(store.OPERATOR) else agent


def show(row: store.ArtifactRow) -> dict[str, Any]:
    """Return what others may know about an artifact. Who registered it is for the operator."""
    return {name: value for name, value in row.document().items() if name != "actor"}


_CONFLICTS: Final = {
    "version-taken": ("version-taken", "This version is registered with other content; give the change a new version."),
    "version-order": ("version-order", "{artifact:.80}: {fault}."),
    "too-many-versions": ("version-order", "{artifact:.80}: there are {most} versions, which is the limit."),
    "signature-missing": ("signature-refused", "The latest version is signed; sign this one too."),
    "of-another": (
        "signature-refused",
        "Somebody else has registered this id. Sign this version with a trusted key, or use another id.",
    ),
    "signer-rank": (
        "signature-refused",
        "The latest version is signed by a key that is trusted more; let its owner sign this one.",
    ),
    "quota": (
        "registry-quota",
        "One agent may register {most} {unit}, all versions together; this one has {used}. Ask the operator for more.",
    ),
    "registry-full": ("registry-quota", "Agents may register {most} artifacts in all, and there is no room left."),
    "reference-unknown": ("ontology-refused", "{id:.200} {version:.40} is not registered; register it first."),
    "": ("registry-changed", "Another registration was faster; try again."),
}
"""Error and message by the reason of a conflict, whose details are filled in."""


def _refusal_of(code: str, message: str, artifact_id: str) -> Callable[[Mapping[str, Any]], Refused]:
    def refuse(found: Mapping[str, Any]) -> Refused:
        told = {"sha256": found["digest"]} if code == "version-taken" else found if code == "registry-quota" else {}
        return REGISTER_ONTOLOGY.refuse(code, message.format(artifact=artifact_id, **found), **told)

    return refuse
