"""Time measurement of a run: each check is repeated separately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from bespeak.checks.lint.context import Context
from bespeak.checks.lint.failed_check import attempt
from bespeak.checks.lint.passes import PASSES
from bespeak.checks.lint.reading import read_subject
from bespeak.checks.lint.registration import check_contract
from bespeak.checks.lint.subject import Subject


class Times:
    """Seconds per step over all measured documents."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._documents = 0

    def measure(self, subject: Subject, context: Context) -> None:
        """Read and check a document again, step by step."""
        self._documents += 1
        text = subject.tree.text
        self._clock("reading, pass 1", read_subject, text, subject.tree.file, subject.kind)
        for step in PASSES:
            for check in step.document:
                self._clock(_name(step.number, check), _all, check, subject, context)
            for look in step.endpoint:
                self._clock(_name(step.number, look), _each, look, subject, context)
        self._clock("registration, AGTP-API", _register, subject, context)

    def rows(self) -> Iterator[str]:
        """Return a line for each step, longest first."""
        total = sum(self._seconds.values())
        yield f"{total * 1000:9.1f} ms  {self._documents} documents, each step measured by itself"
        for name, seconds in sorted(self._seconds.items(), key=lambda pair: -pair[1]):
            yield f"{seconds * 1000:9.1f} ms  {name}"

    def _clock(self, name: str, action: Callable[..., object], *arguments: object) -> None:
        start = perf_counter()
        action(*arguments)
        self._seconds[name] += perf_counter() - start


def _all(check: Callable[..., Iterable[Any]], subject: Subject, context: Context) -> list[Any]:
    return list(attempt(check, subject, context))


def _each(check: Callable[..., Iterable[Any]], subject: Subject, context: Context) -> list[Any]:
    return [finding for declared in subject.endpoints for finding in attempt(check, declared, context)]


def _register(subject: Subject, context: Context) -> list[Any]:
    found = (check_contract(one.endpoint, context.catalog, context.policies) for one in subject.endpoints)
    return [finding for findings in found for finding in findings]


def _name(number: int, check: Callable[..., object]) -> str:
    module = check.__module__.rpartition(".")[2]
    return f"pass {number}, {module}.{check.__name__.lstrip('_')}"
