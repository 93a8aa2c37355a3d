"""Time to plan proposals over a service of more than a thousand endpoints. Run `python bench/planning.py`."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from report import Goal, table

from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.extensions.negotiation.plan import Plan
from bespeak.extensions.negotiation.planner.planner import Planner

MEDIAN: Final = Goal("median", at_most=50, unit=" ms")
WORST: Final = Goal("worst", at_most=500, unit=" ms")
REPEATS: Final = 3

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_AREAS: Final = ("shop", "clinic", "school", "harbour", "museum", "farm", "bank", "studio", "depot", "library")
_THINGS: Final = ("order", "client", "invoice", "parcel", "ticket", "visit", "course", "permit", "device", "report")
_PARTS: Final = ("line", "comment", "reminder")
_ATTRIBUTES: Final = ("name", "status", "note", "city", "email", "created_at", "owner", "level", "label", "origin")


def measure() -> bool:
    """Print the time of the index and of the plans; return True if every goal is met."""
    endpoints = list(_endpoints())
    started = time.perf_counter()
    planner = Planner(endpoints)
    built = time.perf_counter() - started
    gc.collect()
    gc.freeze()  # as the server does after its start
    rows = [["proposals", "count", "plans", "p50 ms", "p95 ms", "worst ms"]]
    everything: list[float] = []
    for name, proposals in _proposals().items():
        times, planned = _time(planner, proposals)
        everything += times
        cells = [f"{times[int(len(times) * share)]:.1f}" for share in (0.5, 0.95)]
        rows.append([name, str(len(proposals)), str(planned), *cells, f"{times[-1]:.1f}"])
    everything.sort()
    median, worst = everything[len(everything) // 2], everything[-1]
    print(f"  index of {len(endpoints):,} endpoints: {built:.2f} s")
    print(table(rows))
    print()
    print("  " + MEDIAN.line("planning, median", median))
    print("  " + WORST.line("planning, worst", worst))
    return MEDIAN.met(median) and WORST.met(worst)


def _time(planner: Planner, proposals: list[Endpoint]) -> tuple[list[float], int]:
    """Return the best of some times for each proposal, sorted, and how many have a plan."""
    times, planned = [], 0
    for proposal in proposals:
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            found = planner.plan(proposal)
            best = min(best, 1000 * (time.perf_counter() - started))
        times.append(best)
        planned += isinstance(found, Plan)
    return sorted(times), planned


def _endpoints() -> Iterator[Endpoint]:
    """Yield list, fetch, search and change of a hundred things, with parts, each of which refers to two others."""
    for area in _AREAS:
        for at, thing in enumerate(_THINGS):
            noun, row = f"{area}_{thing}", _row(area, at)
            path = f"/{area}-{thing}s"
            many = {f"{noun}s": {"type": "array", "items": _object(row)}, "next_cursor": _TEXT}
            paged = {"cursor": _TEXT, "limit": {"type": "integer"}}
            yield _endpoint("LIST", path, {"status": _TEXT, **paged}, many)
            yield _endpoint("FETCH", f"{path}/{{{noun}_id}}", {f"{noun}_id": _TEXT}, row, needs=(f"{noun}_id",))
            yield _endpoint("SEARCH", f"{path}/matches", {"query": _TEXT}, many, needs=("query",))
            yield _endpoint("UPDATE", f"{path}/{{{noun}_id}}", row, row, needs=(f"{noun}_id",), impact="reversible")
            yield _endpoint(
                "REMOVE", f"{path}/{{{noun}_id}}", {f"{noun}_id": _TEXT}, {"done": _TEXT}, impact="irreversible"
            )
            for part in _PARTS:
                inner = {f"{noun}_{part}_id": _TEXT, "text": _TEXT, "position": _NUMBER, f"{noun}_id": _TEXT}
                parts = {f"{noun}_{part}s": {"type": "array", "items": _object(inner)}}
                yield _endpoint("LIST", f"{path}/{{{noun}_id}}/{noun}-{part}s", {f"{noun}_id": _TEXT}, parts)
                key = f"{noun}_{part}_id"
                yield _endpoint("FETCH", f"/{noun.replace('_', '-')}-{part}s/{{{key}}}", {key: _TEXT}, inner)


def _row(area: str, at: int) -> dict[str, Any]:
    noun = f"{area}_{_THINGS[at]}"
    others = [f"{area}_{_THINGS[(at + step) % len(_THINGS)]}_id" for step in (1, 3)]
    attributes = dict.fromkeys(_ATTRIBUTES, _TEXT)
    return {f"{noun}_id": _TEXT, **attributes, "total": _NUMBER, **dict.fromkeys(others, _TEXT)}


def _proposals() -> dict[str, list[Endpoint]]:
    """Make proposals of one to four steps, filters, and some for which there is no plan."""
    found: dict[str, list[Endpoint]] = {}
    for area in _AREAS[::2]:
        for at in range(0, len(_THINGS), 3):
            chain = [f"{area}_{_THINGS[(at + step) % len(_THINGS)]}" for step in range(4)]
            key = f"{chain[0]}_id"
            for steps in range(1, 5):
                path = f"/{chain[0].replace('_', '-')}s/{{{key}}}"
                path += "".join(f"/{noun.replace('_', '-')}" for noun in chain[1:steps])
                wanted = {f"{chain[steps - 1]}_{name}": _TEXT for name in ("city", "label")}
                found.setdefault(f"chain of {steps}", []).append(_endpoint("FETCH", path, {key: _TEXT}, wanted))
            plural = f"{chain[0]}s"
            rows = {plural: {"type": "array", "items": _object({key: _TEXT, "total": _NUMBER})}}
            path = f"/{chain[0].replace('_', '-')}s/large"
            found.setdefault("filter", []).append(_endpoint("FIND", path, {"min_total": _NUMBER}, rows))
            joined = {plural: {"type": "array", "items": _object({key: _TEXT, f"{chain[1]}_city": _TEXT})}}
            found.setdefault("for each row", []).append(_endpoint("LIST", f"/{plural.replace('_', '-')}", {}, joined))
            odd = {f"{chain[0]}_city": _TEXT, "shoe_size": _NUMBER}
            found.setdefault("impossible", []).append(_endpoint("FETCH", "/things", {"some_key": _TEXT}, odd))
    wide = {f"{area}_{thing}_{name}": _TEXT for area in _AREAS for thing in _THINGS for name in _ATTRIBUTES[:2]}
    keys = {f"{area}_{thing}_id": _TEXT for area in _AREAS for thing in _THINGS[:5]}
    found["hostile"] = [
        _endpoint("FETCH", "/everything", keys, dict(list(wide.items())[:count])) for count in (40, 190)
    ]
    return found


def _endpoint(
    method: str,
    path: str,
    takes: dict[str, Any],
    yields: dict[str, Any],
    *,
    needs: tuple[str, ...] | None = None,
    impact: str = "informational",
) -> Endpoint:
    required = [name for name in takes if f"{{{name}}}" in path or name == "min_total"] if needs is None else needs
    return Endpoint(
        method=method,
        path=path,
        description=f"{method} {path}",
        semantic=Semantic(
            intent="", actor="agent", outcome="", confidence=0.9, impact=impact, is_idempotent=impact == "informational"
        ),
        input_schema={**_object(takes), "required": list(required)},
        output_schema=_object(yields),
        handler=OpaqueHandler(type="registered_function"),
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


if __name__ == "__main__":
    sys.exit(0 if measure() else 1)
