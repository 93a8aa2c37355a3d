"""Profiles of tasks: recorded with the first call, and the same until they are renegotiated (IoA 9)."""

from __future__ import annotations

from typing import Any

import msgspec

from bespeak.contract.ontology.profile import SemanticProfile
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.protocol.exchange.headers import SEMANTIC_PROFILE, TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.semantic.calls import CallJudge, meaning_of, understand
from bespeak.runtime.semantic.layer import Meaning, check_extra, concepts_of
from bespeak.runtime.semantic.refusal import refuse_change, refuse_missing, refuse_outcome, refuse_unknown
from bespeak.runtime.semantic.registry import read_trust
from bespeak.runtime.server import Server
from bespeak.runtime.settlement import TaskAdmission
from bespeak.state.store.command import Command
from bespeak.state.store.commands.profiles import RecordedProfile, RecordProfile, UseProfile, task_record
from bespeak.state.store.commands.tasks import PausedTask


class TaskProfiles:
    """Admits calls by the profile of their task, after the check whether the task is paused."""

    def __init__(self, layer: CallJudge, pausing: TaskAdmission) -> None:
        self._layer = layer
        self._pausing = pausing

    def concerns(self, call: RoutedCall) -> bool:
        """Return True if a call needs the store to be understood, or its task may be paused."""
        headers = call.request.headers
        if meaning_of(call) is not None:
            mine = TASK_ID in headers
        else:
            mine = SEMANTIC_PROFILE in headers or (TASK_ID in headers and self._layer.judges(call.route))
        return mine or self._layer.requires(call.route.endpoint) or self._pausing.concerns(call)

    def ask(self, call: RoutedCall) -> Command | Refused | None:
        """Return None if the call is admitted, a refusal, or a command whose result decides."""
        return self._pausing.ask(call) or self._ask(call)

    def judge(self, call: RoutedCall, found: Any) -> Command | Refused | None:
        """Judge what was found about the task: that it is paused, or its profile."""
        if found is None or isinstance(found, PausedTask):
            return self._pausing.judge(call, found) or self._ask(call)
        assert isinstance(found, RecordedProfile)
        meaning = meaning_of(call)
        if meaning is not None:
            return None if found.digest == meaning.digest else refuse_change(call, found.digest)
        return self._understand(call, found)

    def _ask(self, call: RoutedCall) -> Command | Refused | None:
        headers, meaning = call.request.headers, meaning_of(call)
        task_id = headers.get(TASK_ID)
        owner = call.agent_id or ""
        if meaning is not None:
            if task_id is None:
                return None
            plain = msgspec.to_builtins(meaning.profile)
            return RecordProfile(task_record(owner, task_id), owner, meaning.digest, plain)
        reference = headers.get(SEMANTIC_PROFILE)
        if reference is not None:
            return UseProfile(reference[:128])
        # Whether calls must say what they mean or not: the profile of a task is that of all its calls (IoA 9).
        if task_id is not None and self._layer.judges(call.route):
            return UseProfile(task_record(owner, task_id))
        return self._missing(call)

    def _missing(self, call: RoutedCall) -> Refused | None:
        """Refuse a call without a profile; what a built-in method calls is judged step by step."""
        required = self._layer.requires(call.route.endpoint)
        return refuse_missing(call, self._layer.spoken()) if required else None

    def _understand(self, call: RoutedCall, found: RecordedProfile) -> Command | Refused | None:
        """Judge a profile that the call refers to, by a header or by its task."""
        endpoint, reference = call.route.endpoint, call.request.headers.get(SEMANTIC_PROFILE)
        if not found.digest or found.owner != (call.agent_id or ""):
            return self._missing(call) if reference is None else refuse_unknown(reference)
        profile = msgspec.convert(found.profile, SemanticProfile)
        outcome = self._layer.negotiate(profile, endpoint)
        if outcome.match == "none":
            return refuse_outcome(call, outcome, self._layer.spoken(concepts_of(endpoint)))
        understand(call, Meaning(profile, outcome))
        return None if reference is None else self._ask(call)


def open_semantic(server: Server, settings: SemanticSettings, pausing: TaskAdmission) -> TaskProfiles:
    """Give a server its semantic layer; raise ConfigError if the extra is missing."""
    check_extra()
    server.semantic = CallJudge(settings, lambda: server.routes, read_trust(settings))
    if settings.sensitive:
        server.semantic.knowledge.changed = server.republish
    return TaskProfiles(server.semantic, pausing)
