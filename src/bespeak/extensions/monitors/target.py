"""What a monitor observes, which events that can have, and the monitor as it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.extensions.monitors.health import Summary
from bespeak.extensions.monitors.store import AGENT, ENDPOINT, RECORD, SERVER
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.composition.values import COMPARE
from bespeak.runtime.expressions.pool import ExpressionFault, Expressions
from bespeak.runtime.identity.authority import Authority

STATUS: Final = "status_changed"
TIER: Final = "trust_tier_changed"
SCORE: Final = "trust_score_changed"
AVAILABILITY: Final = "availability_changed"
ERROR_RATE: Final = "error_rate_changed"
LATENCY: Final = "latency_changed"
OUTPUT: Final = "output_changed"
STATE: Final = "state_changed"
HEALTH: Final = "health_changed"

EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    AGENT: (STATUS, TIER, SCORE),
    ENDPOINT: (AVAILABILITY, ERROR_RATE, LATENCY, OUTPUT),
    RECORD: (STATE,),
    SERVER: (HEALTH,),
}
"""Events of each kind of target."""
NUMBERS: Final = frozenset({TIER, SCORE, ERROR_RATE, LATENCY, OUTPUT})  # events whose values can be numbers
MEASURED: Final = frozenset({ERROR_RATE, LATENCY})  # events that change with every call, so that they need a threshold
_MEMBERS: Final = frozenset({"method", "path", "parameters", "select"})
_LONGEST: Final = 1000
_URI: Final = re.compile(
    r"agtp://(?:(?P<agent>[0-9a-f]{64})(?:@[^/]*)?|(?P<host>[^/@:]+)(?::[0-9]+)?)(?P<path>(?:/.*)?)"
)


class MonitorTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    name: str  # Agent-ID, path, id of a record, or `server`
    method: str = ""  # method of an endpoint
    parameters: dict[str, Any] = {}  # input of the calls that poll an endpoint
    select: str = ""  # path to the part of the output that counts; empty for all of it


def parse_target(given: Any, server_id: str) -> MonitorTarget | str:
    """Read a target, without looking for it; return what is wrong with it as a text, for an object."""
    if isinstance(given, str):
        server_names = (SERVER, "self", server_id)
        if is_canonical_id(given):
            return MonitorTarget(AGENT, given)
        uri = _URI.fullmatch(given)
        if uri is not None and uri["agent"]:
            return MonitorTarget(AGENT, uri["agent"])
        if uri is not None and uri["host"] in server_names and uri["path"].strip("/"):
            return MonitorTarget(ENDPOINT, uri["path"], "FETCH")
        if given in server_names or (uri is not None and uri["host"] in server_names):
            return MonitorTarget(SERVER, SERVER)
        method, _, path = given.partition(" ")
        return MonitorTarget(ENDPOINT, path, method) if path.startswith("/") else MonitorTarget(RECORD, given)
    unknown = given.keys() - _MEMBERS
    if unknown:
        return f"has the unknown member {min(unknown)[:40]!r}; it takes {', '.join(sorted(_MEMBERS))}"
    method, path, select = given.get("method"), given.get("path", "/"), given.get("select", "")
    texts = all(isinstance(one, str) and len(one) <= _LONGEST for one in (method, path, select))
    if not texts or not isinstance(given.get("parameters", {}), dict):
        return "needs a text `method`, and may have the texts `path` and `select` and an object `parameters`"
    return MonitorTarget(ENDPOINT, path, method, given.get("parameters", {}), select)


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    value: Any = None  # the value, or its digest if it is large
    beyond: bool = False  # True if it was on the far side of the threshold


class View(msgspec.Struct, frozen=True):
    at: float
    summary: Summary


class Monitor(msgspec.Struct, frozen=True, omit_defaults=True):
    target: MonitorTarget
    events: tuple[str, ...]
    callback: str  # Agent-ID of the owner for its inbox, or an address that was verified
    interval: float
    authority: Authority
    threshold: Any = None
    version: int = 0  # version of the record that is looked at, when it was
    seen: dict[str, Seen] = {}
    views: dict[str, View] = {}  # views of the processes that share the store, by the id of each
    ended: dict[str, Any] | None = None  # code and message of the reason why it ended by itself; None while it looks


decode: Final = msgspec.json.Decoder(Monitor).decode


MISSING: Final = object()  # what a path leads to where nothing is; no condition holds for it


def find_fault(condition: Any) -> str | None:
    """Return what is wrong with a condition; None if it can be tested."""
    if not isinstance(condition, Mapping):
        return None
    unknown = condition.keys() - COMPARE.keys()
    if unknown or not condition:
        named = f"{min(unknown)[:40]!r} is not a comparison" if unknown else "it has no comparison"
        return f"{named}; use {', '.join(COMPARE)}"
    if "in" in condition and not isinstance(condition["in"], list):
        return "`in` takes a list"
    return None


def holds(condition: Any, value: Any) -> bool:
    """Return True if a value meets a condition without faults."""
    if value is MISSING:
        return False
    if not isinstance(condition, Mapping):
        return COMPARE["eq"](condition)(value)
    return all(COMPARE[name](wanted)(value) for name, wanted in condition.items())


def find_member(value: Any, path: str) -> Any:
    """Follow a path of member names and positions with dots; return MISSING if it leads nowhere."""
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and part.isascii() and int(part[:9]) < len(value):
            value = value[int(part[:9])]
        else:
            return MISSING
    return value


THRESHOLD_NAMES: Final = ("value", "previous")  # variables of an expression


async def check_threshold(
    threshold: Any, events: Sequence[str], expressions: Expressions, owner: str | None = None
) -> str | None:
    """Return what is wrong with a threshold for these events; None if it can be used."""
    if threshold is None:
        needing = sorted(MEASURED.intersection(events))
        return f"is missing; {needing[0]} changes with every call and needs one" if needing else None
    if isinstance(threshold, (int, float)):
        unfit = sorted(set(events) - NUMBERS)
        return f"is a number, but {unfit[0]} has no number to compare" if unfit else None
    if len(events) != 1:
        return "is a condition, which takes one event; use one monitor for each event"
    if isinstance(threshold, Mapping):
        fault = find_fault(threshold)
    else:
        fault = await expressions.check(threshold, THRESHOLD_NAMES, owner)
    return None if fault is None else f"cannot be used: {fault}"


async def is_beyond(
    threshold: Any, value: Any, previous: Any, expressions: Expressions, owner: str | None = None
) -> bool | ExpressionFault:
    """Return True if a value is on the far side of a threshold."""
    if isinstance(threshold, (int, float)):
        return holds({"gte": threshold}, value)
    if isinstance(threshold, Mapping):
        return holds(threshold, value)
    found = await expressions.evaluate(threshold, {"value": value, "previous": previous}, owner)
    if isinstance(found, bool | ExpressionFault):
        return found
    return ExpressionFault("the expression must be true or false")


def is_news(threshold: Any, *, was: bool, now: bool) -> bool:
    """Return True if the change of sides is worth a notification."""
    return was != now if isinstance(threshold, (int, float)) else now and not was
