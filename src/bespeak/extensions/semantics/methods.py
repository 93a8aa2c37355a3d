"""DISCOVER, DESCRIBE and PROPOSE on a server with a semantic layer (IoA 8, 9)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import MOST_IRI
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.definition import LINE, METHOD, OBJECT, PATH, list_of, object_of
from bespeak.contract.standard.floor import read_filter
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.layer import MeaningIndex, SemanticLayer, digest_of, own_profile, read_wanted
from bespeak.extensions.semantics.negotiation import SemanticOutcome
from bespeak.extensions.semantics.profile import SemanticProfile
from bespeak.extensions.semantics.store import RecordedProfile, ReplaceProfile, profile_record, task_record
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.call import RoutedCall, may_discover
from bespeak.runtime.handling import effects, handler, refusal, stateful

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

Result = Answer | Envelope | Effects | Refused
Handler = Callable[[RoutedCall], Any]


def describing(describe: Handler) -> Handler:
    """Build the handler of DESCRIBE on a server with a semantic layer."""

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

    def handle(call: RoutedCall) -> Result | Coroutine[Any, Any, Result]:
        if PROFILE not in call.input:
            answer: Result | Coroutine[Any, Any, Result] = propose(call)
            return answer
        return _propose_profile(call)

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
    ids = [profile_record(owner, digest), *(() if task_id is None else (task_record(owner, task_id),))]
    commands = tuple(ReplaceProfile(record_id, owner, digest, plain) for record_id in ids)

    def result(results: Sequence[RecordedProfile]) -> dict[str, Any]:
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


def discovering(discover: Callable[[RoutedCall], Any]) -> Callable[[RoutedCall], Any]:
    """Build the handler of DISCOVER, around the one that searches by words."""

    def handle(call: RoutedCall) -> Any:
        answer = discover(call)
        if not isinstance(answer, Envelope) or "candidates" not in answer.result:
            return answer
        layer: SemanticLayer = call.server.part("semantic")
        index = layer.view.index
        by_words = [one for one in answer.result["candidates"] if _shows(call, index, one)]
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


def _shows(call: RoutedCall, index: MeaningIndex, candidate: dict[str, Any]) -> bool:
    endpoint = call.routes.endpoints.get(_key(candidate))
    return endpoint is None or index.shows(endpoint, call.principal)


def _with_profile(call: RoutedCall, candidate: dict[str, Any]) -> dict[str, Any]:
    """Add the profile to call an endpoint with, in the vocabulary of the service itself; words are not a match."""
    endpoint, snapshot = call.routes.endpoints.get(_key(candidate)), call.server.part("semantic").snapshot
    if endpoint is None or snapshot.own is None:
        return candidate
    profile = own_profile(call.routes.service, endpoint, snapshot.own)
    envelope = write_envelope(profile, namespace=snapshot.namespace)
    return {**candidate, "match": "unmatched", "confidence": 0.0, "semantic": envelope}


def _key(candidate: dict[str, Any]) -> tuple[str, str]:
    return candidate.get("method", ""), candidate.get("path", "")
