"""What a monitor observes, which events that can have, and the monitor as it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.extensions.monitors.statistics import Summary
from bespeak.extensions.monitors.store import AGENT, RECORD
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.identity.authority import Authority

ENDPOINT: Final = "endpoint"
SERVER: Final = "server"

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


_encode = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Monitor).decode


def encode(monitor: Monitor) -> str:
    return _encode(monitor).decode()
