"""Calls as the gates judge them: is what they mean what the endpoint does (IoA 5.4, 7.1)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bespeak.checks.alignment.artifact import Trust
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.protocol.exchange.headers import SEMANTIC_PROFILE, TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.route_table import RouteTable
from bespeak.runtime.semantic.layer import Meaning, SemanticLayer, concepts_of
from bespeak.runtime.semantic.mapping_history import MappingHistory
from bespeak.runtime.semantic.refusal import refuse_missing, refuse_outcome, refuse_unknown
from bespeak.state.store.store import Store


class CallJudge(SemanticLayer):
    """The semantic layer as gates use it; `server.semantic`."""

    def __init__(
        self,
        settings: SemanticSettings,
        routes: Callable[[], RouteTable] | None = None,
        trust: Trust | None = None,
    ) -> None:
        super().__init__(settings, routes, trust)
        self.history = MappingHistory()
        """What has come of mapped calls; subscribed to exchanges where there is a store."""

    async def follow(self, store: Store) -> None:
        """Follow the registry in the store, and add to its history of mappings."""
        await super().follow(store)
        self.history.follow(store)

    async def close(self) -> None:
        """Store what was counted, and cancel pending work."""
        await self.history.close()
        await super().close()

    def judge(self, call: RoutedCall) -> Refused | None:
        """Understand the envelope of a call, or refuse it."""
        document, headers, endpoint = getattr(call, "semantic", None), call.request.headers, call.route.endpoint
        if document is None:
            known = call.server.store is not None
            if SEMANTIC_PROFILE in headers:
                return None if known else refuse_unknown(headers[SEMANTIC_PROFILE])
            if self.requires(endpoint) and not (known and TASK_ID in headers):
                return refuse_missing(call, self.spoken())
            return None
        profile, outcome = self.read(document, endpoint)
        if outcome.match == "none" or profile is None:
            return refuse_outcome(call, outcome, self.spoken(concepts_of(endpoint)))
        understand(call, Meaning(profile, outcome))
        return None

    def judge_step(self, call: RoutedCall) -> Refused | None:
        """Judge a step that a built-in method makes for its caller by what the call of the method means."""
        outer = call.parent
        if outer is None or not outer.route.builtin:
            return None
        while outer.parent is not None:
            outer = outer.parent
        meaning, endpoint = meaning_of(outer), call.route.endpoint
        if meaning is None:
            return refuse_missing(call, self.spoken()) if self.requires(endpoint) else None
        outcome = self.negotiate(meaning.profile, endpoint)
        if outcome.match == "none":
            return refuse_outcome(call, outcome, self.spoken(concepts_of(endpoint)))
        understand(call, Meaning(meaning.profile, outcome))
        return None


def understand(call: RoutedCall, meaning: Meaning) -> None:
    """Keep what a call means with its request, where its handler and its steps find it."""
    call.request = msgspec.structs.replace(call.request, semantic=meaning)


def meaning_of(call: RoutedCall) -> Meaning | None:
    """Return what a call means, once it is understood; None if it does not say."""
    meaning: Meaning | None = call.request.semantic
    return meaning
