"""The blocking agent, for code without an event loop. It runs the asynchronous one in a thread."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from bespeak.agent.acting.agent import Acted, ActingAgent
from bespeak.agent.acting.decision import Decision
from bespeak.agent.acting.service_map import Candidate, ServiceMap
from bespeak.agent.acting.steps import Carried, Plan
from bespeak.agent.client.synchronous import LoopThread


class BlockingAgent:
    """An Agent with blocking methods, for a plain `with` block."""

    def __init__(self, agent: ActingAgent) -> None:
        self._agent = agent
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._loop = LoopThread()
        self._stack.callback(self._loop.stop)
        try:
            self._loop.run(self._agent.__aenter__())
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(lambda: self._loop.run(self._agent.__aexit__(None, None, None)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def service_map(self) -> ServiceMap:
        """Services that this agent knows, and those that could not be read."""
        return self._agent.service_map

    def match(self, instruction: str, limit: int = 5) -> list[Candidate]:
        """Return the endpoints that may serve an instruction, best first."""
        return self._agent.service_map.match(instruction, limit)

    def decide(self, instruction: str, **options: Any) -> Decision:
        """Return what an instruction means and whether it may be called. Nothing is called."""
        return self._loop.run(self._agent.decide(instruction, **options))

    def plan(self, instruction: str) -> Plan:
        """Return the steps of an instruction, each decided like an instruction of its own. Nothing is called."""
        return self._loop.run(self._agent.plan(instruction))

    def carry_out_plan(self, plan: Plan) -> Carried:
        """Carry out a plan step by step, until the first that is not carried out."""
        return self._loop.run(self._agent.carry_out_plan(plan))

    def act(self, instruction: str) -> Acted | Carried:
        """Decide, ask what is missing, ask for agreement where it is needed, and call: `Carried` for several steps."""
        return self._loop.run(self._agent.act(instruction))

    def carry_out(self, decided: Decision, *, agreed: bool = False) -> Acted:
        """Carry out a decision. `agreed` is True if a person has agreed to exactly this call."""
        return self._loop.run(self._agent.carry_out(decided, agreed=agreed))
