"""Progress of what a service carries on in the background, shown by `bespeak call` until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from bespeak.agent.client.errors import Reply
from bespeak.agent.client.service import ServiceClient
from bespeak.protocol import status
from bespeak.terminal.console import console, line

_GOING_ON: Final = frozenset({"queued", "running", "waiting", "sleeping", "cancelling"})
_GOOD: Final = frozenset({"done", "completed"})
_SHORTEST: Final = 0.05
_LONGEST: Final = 2.0  # seconds between two looks


class Ended:
    """The end of a call: its reply, or the last one of CHECK if it was followed to its end."""

    def __init__(self, reply: Reply, *, followed: bool = False) -> None:
        self.reply = reply
        self.result: Any = None  # the receipt, or what CHECK tells if there is none; None if it was not followed
        self.fault = ""  # what went wrong in the background; empty if nothing did
        if not followed or not reply.ok:
            return
        told = reply.output
        details, state = told.get("details") or {}, told.get("status")
        self.result = details.get("result", told)
        if state not in _GOOD:
            error = details.get("error") or told.get("error") or {}
            self.fault = f"It is {state}: {error.get('code')}: {error.get('message')}" if error else f"It is {state}."


async def follow(client: ServiceClient, service: str, reply: Reply, headers: Mapping[str, str]) -> Ended:
    """Follow what a call has begun in the background to its end, if its reply says where to look."""
    target = _find_look(reply)
    if target is None:
        return Ended(reply)
    try:
        return Ended(await _ask(client, target, headers), followed=True)
    except asyncio.CancelledError:  # Ctrl-C
        hint = f"It goes on. See it with: bespeak call {service} CHECK / target={target}"
        console(stderr=True).print(line(hint))
        raise


def _find_look(reply: Reply) -> str | None:
    """Return the id under which CHECK shows what an accepted call does; None if the reply tells none."""
    match reply.output if reply.status == status.ACCEPTED else None:
        case {"look": {"method": "CHECK", "parameters": {"target": str(target)}}}:
            return target
    return None


async def _ask(client: ServiceClient, target: str, headers: Mapping[str, str]) -> Reply:
    """Ask CHECK until what it shows has ended, with a bar on a terminal; return its last reply."""
    from rich.progress import Progress  # noqa: PLC0415 - most calls are answered at once

    aside, wait = console(stderr=True), _SHORTEST
    with Progress(console=aside, transient=True, disable=not aside.is_terminal) as shown:
        bar = shown.add_task("waiting", total=None)
        while True:
            reply = await client.request("CHECK", "/", {"target": target}, headers=headers)
            told = reply.output if reply.ok else {}
            if told.get("status") not in _GOING_ON:
                return reply
            progress = (told.get("details") or {}).get("progress") or {}
            done, total = progress.get("done") or 0, progress.get("total")
            counted = f", {done:,}{f' of {total:,}' if total else ''} {progress.get('unit', '')}" if done else ""
            shown.update(bar, description=line(f"{told['status']}{counted}").plain, completed=done, total=total)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST)
