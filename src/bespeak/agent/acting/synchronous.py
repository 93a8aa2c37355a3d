"""The blocking agent, for code without an event loop. It runs the asynchronous one in a thread."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from bespeak.agent.acting.agent import ActingAgent
from bespeak.agent.acting.service_map import Candidate, ServiceMap
from bespeak.agent.client.synchronous import LoopThread, waiting


class BlockingAgent:
    """An Agent with blocking methods, for a plain `with` block."""

    def __init__(self, agent: ActingAgent) -> None:
        self._service = agent
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._loop = LoopThread()
        self._stack.callback(self._loop.stop)
        try:
            self._loop.run(self._service.__aenter__())
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(lambda: self._loop.run(self._service.__aexit__(None, None, None)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    decide = waiting(ActingAgent.decide)
    plan = waiting(ActingAgent.plan)
    act = waiting(ActingAgent.act)
    carry_out = waiting(ActingAgent.carry_out)
    carry_out_plan = waiting(ActingAgent.carry_out_plan)

    @property
    def service_map(self) -> ServiceMap:
        """Services that this agent knows, and those that could not be read."""
        return self._service.service_map

    def match(self, instruction: str, limit: int = 5) -> list[Candidate]:
        """Return the endpoints that may serve an instruction, best first."""
        return self._service.service_map.match(instruction, limit)
