"""MONITOR: a subscription to the changes of a target, whose callback has been verified (Tier 2 8.3, 10.5)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.verification import verify_callback
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.transact.cancel import CANCELS
from bespeak.runtime.monitors.monitor import Monitor, encode
from bespeak.runtime.monitors.monitors import Monitors, describe
from bespeak.runtime.monitors.target import EVENTS, SERVER, Target, parse_target
from bespeak.runtime.monitors.threshold import check_threshold
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.monitors import ACTIVE, MONITOR, monitor_key
from bespeak.state.store.commands.records import PutRecord

OBSERVABLE: Final = tuple(kind for kind in CANCELS if kind != MONITOR)
"""Kinds of records that their owner can observe. A monitor of a monitor could be one of itself."""
INBOX: Final = "inbox"
"""Callback that means the inbox of the caller, beside its Agent-ID."""
MOST_MONITORS: Final = 100
"""Monitors of one agent that exist or can still be looked up."""
LEAST_INTERVAL: Final = 5.0
INTERVAL: Final = 60.0
"""Seconds between two looks, if the caller does not say."""
MOST_TARGET: Final = 8 * 1024
"""Maximum bytes of a target or a threshold."""
_MONITOR: Final = STANDARD["MONITOR"]


async def monitor(call: RoutedCall) -> Effects | Refused:
    """Answer MONITOR /. The target is looked at once, and the callback has agreed, before the subscription exists."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    wanted = await _read(call)
    if isinstance(wanted, Refused):
        return wanted
    monitors: Monitors = call.server.monitors
    found = await monitors.observe(call, wanted)
    if isinstance(found, Refused):
        known = next((error for error in _MONITOR.errors if error.name == found.code), None)
        return found if known is None else _MONITOR.refuse(found.code, found.message, **found.details)
    if wanted.callback != call.agent_id:
        refused = await verify_callback(call, wanted.callback)
        if refused is not None:
            return refused
    started, token = found[0], secrets.token_hex(16)
    command = PutRecord(
        f"monitor-{token}",
        MONITOR,
        call.agent_id or "",
        ACTIVE,
        encode(started),
        monitor_key(token, started.target.mark, started.version),
        delay=started.authority.within(call.server.principals, started.interval),
        most=MOST_MONITORS,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _MONITOR.refuse("too-many-monitors", f"The agent has {MOST_MONITORS} monitors, the maximum.")
        result = {
            "subscription_id": command.record_id,
            "target": describe(started.target),
            "events": list(started.events),
            "interval": started.interval,
        }
        end = started.authority.expires
        return Envelope(result if end is None else {**result, "expires_at": write_instant(end)})

    return Effects((command,), tell)


async def _read(call: RoutedCall) -> Monitor | Refused:
    """Read the input into a monitor that has not looked yet."""
    given, agent_id = call.input, call.agent_id or ""
    for member in ("target", "threshold"):
        if len(msgspec.json.encode(given.get(member))) > MOST_TARGET:
            message = f"`{member}` must not be larger than {MOST_TARGET // 1024} KiB."
            return _MONITOR.refuse("invalid-" + member, message, field=f"/{member}")
    target = parse_target(given["target"], (SERVER, "self", call.routes.service.identity.server_id))
    if not isinstance(target, Target):
        return _MONITOR.refuse("invalid-target", f"`target` {target}.", field="/target")
    events = tuple(dict.fromkeys(given["events"]))
    unknown = next((event for event in events if event not in EVENTS[target.kind]), None)
    if unknown is not None:
        message = f"A target of this kind has no event {unknown[:80]!r}; it has {', '.join(EVENTS[target.kind])}."
        return _MONITOR.refuse("unknown-event", message, field="/events")
    fault = await check_threshold(given.get("threshold"), events, call.server.expressions, agent_id)
    if fault is not None:
        return _MONITOR.refuse("invalid-threshold", f"`threshold` {fault}.", field="/threshold")
    interval = float(given.get("interval", INTERVAL))
    if interval < LEAST_INTERVAL:
        message = f"`interval` must be at least {LEAST_INTERVAL:g} s; got {interval:g}."
        return _MONITOR.refuse("invalid-interval", message, field="/interval")
    callback = given["callback"]
    return Monitor(
        target=target,
        events=events,
        callback=agent_id if callback == INBOX else callback,
        interval=interval,
        authority=Authority.of(call.principal, call.request),
        threshold=given.get("threshold"),
    )
