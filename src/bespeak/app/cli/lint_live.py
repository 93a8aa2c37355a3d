"""The live services of a `bespeak lint` run: checked one after the other, reported together with files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bespeak.agent.discovery.examination import Examiner
from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.live_check import LiveCheck, check_live, live_address
from bespeak.protocol.address_guard import AddressFault, AddressGuard, WebAddress, trust, typed_host
from bespeak.text.diagnostics.report import Score

if TYPE_CHECKING:
    from bespeak.checks.lint.project import Project


def check_services(
    project: Project, urls: Iterable[str], *, insecure: bool, allow_private: bool, ca_file: Path | None
) -> tuple[tuple[Score, ...], bool]:
    """Check each host and add its findings to the run; return the scores, and True if every host answered.

    Raises UsageError if a URL is not a host address.
    """
    hosts: dict[Any, WebAddress] = {}  # each host is checked once, however its URL was written
    for url in urls:
        address = live_address(url, insecure=insecure)
        if isinstance(address, AddressFault):
            raise click.UsageError(str(address))
        hosts[address.origin] = address

    async def check_all() -> list[LiveCheck]:
        context, tls, checks = project.remote_context(), trust(ca_file) if ca_file is not None else None, []
        for address in hosts.values():
            guard = AddressGuard(typed_host(address.origin.host, address.origin.port), allow_private=allow_private)
            # No cache and no retries: the check is about the current responses.
            fetcher = Fetcher(guard, tls=tls, insecure=insecure, retries=0)
            try:
                checks.append(await check_live(address, Examiner(fetcher), context))
            finally:
                await fetcher.close()
        return checks

    checks = asyncio.run(check_all())
    for check in checks:
        for url in {**check.checked, **check.found}:
            is_document = url in check.checked
            project.add_remote(url, check.checked.get(url), check.found.get(url, ()), is_document=is_document)
    scores = tuple(check.score for check in checks if check.score is not None)
    return scores, all(check.is_reached for check in checks)
