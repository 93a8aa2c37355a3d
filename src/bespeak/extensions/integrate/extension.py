"""The extension: data of other systems, the jobs that bring it, connections through which it goes, and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.errors import ConfigError
from bespeak.extensions.integrate.connect import CONNECTION, CONNECTION_KIND, Connections, connect
from bespeak.extensions.integrate.jobs import JOB, JOB_KIND, Jobs, Work
from bespeak.extensions.integrate.links import embed, link
from bespeak.extensions.integrate.mapping import map_schemas
from bespeak.extensions.integrate.merge import merge
from bespeak.extensions.integrate.methods import carry_import, import_rows
from bespeak.extensions.integrate.remote import open_remotes
from bespeak.extensions.integrate.removal import carry_removal
from bespeak.extensions.integrate.settings import ConnectSettings
from bespeak.extensions.integrate.store import LINK, LINKED, DropEnds, decode_link
from bespeak.extensions.integrate.sync import carry_sync, sync
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import Record

WORKS: Final[Mapping[str, Work]] = {
    "CANCEL": carry_removal,
    "IMPORT": carry_import,
    "SYNC": carry_sync,
}  # what the jobs of each method do


async def _describe_link(_: Server, record: Record) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(decode_link(record.data))
    return found


def _open(opening: Opening) -> None:
    if opening.store is None:
        return
    jobs, connections = Jobs(opening.server, opening.store, WORKS), Connections(opening.server, opening.store)
    opening.provide("jobs", jobs)
    opening.provide("connections", connections)
    opening.on_run(jobs.start)
    opening.on_stop(jobs.stop)
    opening.on_stop(connections.stop)
    settings = opening.document.extension_table("connect", ConnectSettings) or ConnectSettings()
    opening.provide("remotes", open_remotes(opening, settings))
    if settings.nats is not None:
        try:
            from bespeak.extensions.integrate.bus import EventBus  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise ConfigError("[connect.nats] needs nats-py: pip install 'bespeak[nats]'") from error
        bus = EventBus(settings.nats, opening.environment)
        opening.provide("bus", bus)
        opening.on_close(bus.close)


integrate: Final = Extension(
    name="integrate",
    methods={
        "MERGE": merge,
        "LINK": link,
        "SYNC": sync,
        "IMPORT": import_rows,
        "MAP": map_schemas,
        "CONNECT": connect,
        "EMBED": embed,
    },
    kinds={
        JOB: JOB_KIND,
        CONNECTION: CONNECTION_KIND,
        LINK: RecordKind(
            cancelling=Cancelling((LINKED,), also=lambda record: (DropEnds(record.record_id),)), describe=_describe_link
        ),
    },
    open=_open,
)
