"""The extension: data of other systems and the jobs that bring it, and what belongs together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.extensions.integrate.jobs import JOB, JOB_KIND, Jobs, Work
from bespeak.extensions.integrate.links import embed, link
from bespeak.extensions.integrate.mapping import map_schemas
from bespeak.extensions.integrate.merge import merge
from bespeak.extensions.integrate.methods import carry_import, import_rows
from bespeak.extensions.integrate.removal import carry_removal
from bespeak.extensions.integrate.store import LINK, LINKED, DropEnds, decode_link
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import Record

WORKS: Final[Mapping[str, Work]] = {"CANCEL": carry_removal, "IMPORT": carry_import}  # what the jobs of each method do


async def _describe_link(_: Server, record: Record) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(decode_link(record.data))
    return found


def _open(opening: Opening) -> None:
    if opening.store is not None:
        jobs = Jobs(opening.server, opening.store, WORKS)
        opening.provide("jobs", jobs)
        opening.on_run(jobs.start)
        opening.on_stop(jobs.stop)


integrate: Final = Extension(
    name="integrate",
    methods={"MERGE": merge, "LINK": link, "IMPORT": import_rows, "MAP": map_schemas, "EMBED": embed},
    kinds={
        JOB: JOB_KIND,
        LINK: RecordKind(
            cancelling=Cancelling((LINKED,), also=lambda record: (DropEnds(record.record_id),)), describe=_describe_link
        ),
    },
    open=_open,
)
