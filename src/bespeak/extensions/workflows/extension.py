"""The extension: workflows of several calls, which survive a crash."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.engine import Workflows
from bespeak.extensions.workflows.methods import batch, chain, list_endpoints, pause
from bespeak.extensions.workflows.methods_run import run, signal_endpoints
from bespeak.extensions.workflows.schedules import SCHEDULE, Schedules, find_schedules
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind
from bespeak.terminal.panels import panel_in


def _open(opening: Opening) -> None:
    if opening.store is None:
        return
    driven = Workflows(opening.dispatcher, opening.store, lease=opening.document.idempotency.lease)
    opening.provide("workflows", driven)
    opening.on_run(driven.start)
    opening.on_stop(driven.close)
    server_id = opening.server.registrar.service.identity.server_id
    schedules = Schedules(server_id, opening.store, find_schedules(driven.functions.values()))
    opening.provide("schedules", schedules)
    opening.on_run(schedules.start)


workflows: Final = Extension(
    name="workflows",
    methods={"CHAIN": chain, "BATCH": batch, "PAUSE": pause, "RUN": run},
    kinds={
        WORKFLOW: RecordKind(
            due=lambda server: server.part("workflows").take_over,
            # Its steps are undone first, by the process that takes it next.
            cancelling=Cancelling(*states.CHANGES["cancel"]),
            followed=True,
        ),
        SCHEDULE: RecordKind(due=lambda server: server.part("schedules").take),
    },
    endpoints=lambda service: [*list_endpoints(service), *signal_endpoints(service)],
    open=_open,
    panels=(
        panel_in(
            __name__,
            "workflows",
            "Workflows",
            one=True,
            act=("pause", "resume", "cancel", "retry"),
        ),
    ),
)
