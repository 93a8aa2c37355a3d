"""A call with the trail of its gates: which judged it, for how long, and which one refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import GATES, Refused, gate_of
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.dispatcher import Answering, Dispatcher, Outcome
from bespeak.runtime.route import Route

PASSED: Final = "passed"
REFUSED: Final = "refused"
_ABOUT: Final = {name: about for name, about, _ in GATES}
HANDLER: Final = "handler"


@dataclass(frozen=True, slots=True)
class Station:
    """A gate that judged a call, or its handler."""

    name: str
    about: str  # what it decides
    seconds: float
    verdict: str


@dataclass(slots=True)
class Trail:
    """The stations of one call, in the order in which it passed them."""

    stations: list[Station] = field(default_factory=list)

    def note(self, name: str, seconds: float, *, passed: bool) -> None:
        about = _ABOUT.get(name.rpartition(" ")[2], "")
        self.stations.append(Station(name, about, seconds, PASSED if passed else REFUSED))

    def close(self, code: str | None) -> None:
        """Add the gate that refused with `code` if none of the watched ones has: it belongs to the settlement."""
        refused = None if code is None or any(one.verdict == REFUSED for one in self.stations) else gate_of(code)
        if refused is not None:
            self.note(refused, 0.0, passed=False)


class PressAgain(Exception):
    """The call cannot be undone, or passes on to calls that may be so, and nobody has pressed again."""


class TracedDispatcher(Dispatcher):
    """A dispatcher that answers exactly as another one, for one call, and notes its trail."""

    def __init__(self, dispatcher: Dispatcher, trail: Trail, *, confirmed: bool = True) -> None:
        """Trace a call through `dispatcher`, whose settlement, subscribers and gates are shared.

        Raises PressAgain for a call that cannot be undone, or may call what cannot, unless it is `confirmed`.
        """
        vars(self).update(vars(dispatcher))
        self._trail = trail
        self._confirmed = confirmed
        self._arrival = tuple(map(self._watched, self._arrival))
        self._routed = tuple(map(self._watched, self._routed))

    def _watched(self, gate: Callable[..., Any]) -> Callable[..., Any]:
        name = name_of(gate)

        def judge(call: Call) -> Any:
            started = perf_counter()
            refused = gate(call)
            self._trail.note(name, perf_counter() - started, passed=refused is None)
            return refused

        return judge

    def _find(self, call: Call, route: Route | None, started: float) -> Answering:
        began, known = perf_counter(), len(self._trail.stations)
        answer = super()._find(call, route, started)
        if call.route is not None or len(self._trail.stations) > known:
            return answer
        refused = answer.code if isinstance(answer, Response) else None
        if refused is not None:
            self._trail.note(gate_of(refused) or "route", perf_counter() - began, passed=False)
        return answer

    def _proceed(self, routed: RoutedCall, started: float) -> Answering:
        self._trail.note("route", 0.0, passed=True)
        # Here and not before: redirects, legacy verbs, letters in another case and endpoints that exist for one agent
        # only lead to endpoints that the words of the call do not name.
        endpoint = routed.route.endpoint
        if not self._confirmed and (endpoint.passes_on or endpoint.semantic.impact == "irreversible"):
            raise PressAgain("may call what cannot be undone" if endpoint.passes_on else "cannot be undone")
        return super()._proceed(routed, started)

    def _invoke(self, call: RoutedCall) -> Outcome:
        started = perf_counter()
        outcome = super()._invoke(call)
        if isinstance(outcome, Response | Effects):
            self._note_handler(outcome, started)
            return outcome
        return self._await_handler(outcome, started)

    async def _await_handler(
        self, outcome: Coroutine[Any, Any, Response | Effects], started: float
    ) -> Response | Effects:
        settled = await outcome
        self._note_handler(settled, started)
        return settled

    def _note_handler(self, settled: Response | Effects, started: float) -> None:
        refused = isinstance(settled, Response) and settled.code is not None
        self._trail.note(HANDLER, perf_counter() - started, passed=not refused)


def name_of(gate: Callable[..., Refused | None]) -> str:
    """Return the name of a gate, from that of its function: `agent_rate_gate` is the gate `agent rate`."""
    return getattr(gate, "__name__", "gate").strip("_").removesuffix("_gate").removeprefix("judge_").replace("_", " ")
