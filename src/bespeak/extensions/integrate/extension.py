"""The extension: data of other systems, and the jobs that bring it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.extensions.integrate.jobs import JOB, JOB_KIND, Jobs, Work
from bespeak.extensions.integrate.methods import carry_import, import_rows
from bespeak.extensions.integrate.removal import carry_removal
from bespeak.runtime.extension import Extension, Opening

WORKS: Final[Mapping[str, Work]] = {"CANCEL": carry_removal, "IMPORT": carry_import}  # what the jobs of each method do


def _open(opening: Opening) -> None:
    if opening.store is not None:
        jobs = Jobs(opening.server, opening.store, WORKS)
        opening.provide("jobs", jobs)
        opening.on_run(jobs.start)
        opening.on_stop(jobs.stop)


integrate: Final = Extension(name="integrate", methods={"IMPORT": import_rows}, kinds={JOB: JOB_KIND}, open=_open)
