"""The extension: what calls mean, by registered ontologies and profiles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from bespeak.contract.service import Service
from bespeak.extensions.semantics import calls, methods
from bespeak.extensions.semantics.knowledge import open_registry, read_trust
from bespeak.extensions.semantics.layer import check_extra
from bespeak.extensions.semantics.settings import semantic_settings
from bespeak.runtime.extension import Anchor, BuiltIn, Extension, Floor, Gate, Opening
from bespeak.state.store.store import Store
from bespeak.terminal.panels import panel_in

_EXTENDED: Final = {"DISCOVER": methods.discovering, "DESCRIBE": methods.describing, "PROPOSE": methods.proposing}


def _open(opening: Opening) -> None:
    server = opening.server
    settings = semantic_settings(server.registrar.service)
    assert settings is not None, "the extension is chosen by its settings"
    check_extra()
    judge = calls.CallJudge(settings, lambda: server.routes, read_trust(settings))
    if settings.sensitive:
        judge.knowledge.changed = server.republish
    server.hides = judge.hides
    opening.provide("semantic", judge)
    opening.admit_tasks(lambda pausing: calls.TaskProfiles(judge, pausing))
    opening.on_close(judge.close)
    store = opening.store
    if store is not None:
        judge.history = calls.MappingHistory(store)
        opening.on_start(lambda: _follow(judge, store))
        opening.on_close(judge.history.close)
        opening.observe(judge.history)


async def _follow(judge: calls.CallJudge, store: Store) -> None:
    await judge.follow(store)
    judge.report_unknown_concepts()


def _extend(floor: Floor) -> Floor:
    """Let DESCRIBE and PROPOSE negotiate meaning, and DISCOVER search by it."""
    extended = []
    for method, handler in floor:
        if method.name in ("DESCRIBE", "PROPOSE"):
            method = replace(method, takes={**methods.PARAMETERS, **method.takes})  # noqa: PLW2901
        extended.append((method, _EXTENDED[method.name](handler) if method.name in _EXTENDED else handler))
    return extended


def _endpoints(service: Service) -> Iterable[BuiltIn]:
    settings = semantic_settings(service)
    if settings is not None and settings.registry:
        register = methods.register_ontology(open_registry(settings))
        yield BuiltIn(methods.QUERY_ONTOLOGIES, methods.ONTOLOGIES, methods.query_ontologies, listed=True)
        yield BuiltIn(methods.REGISTER_ONTOLOGY, methods.ONTOLOGIES, register, listed=True)


semantics: Final = Extension(
    name="semantics",
    gates=(
        Gate(
            lambda call: call.server.part("semantic").judge(call),
            Anchor.READ,
            step=lambda call: call.server.part("semantic").judge_step(call),
        ),
    ),
    reads=calls.semantic_input_gate,
    floor=_extend,
    endpoints=_endpoints,
    open=_open,
    panels=(panel_in(__name__, "meaning", "Meaning", one=True),),
)
