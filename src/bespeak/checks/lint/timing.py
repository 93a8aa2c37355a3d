"""Time measurement of a run: each check is repeated separately."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

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
        with self._clock("reading, pass 1"):
            read_subject(subject.tree.text, subject.tree.file, subject.kind)
        for step in PASSES:
            for check in step.document:
                with self._clock(_name(step.number, check)):
                    _run(attempt(check, subject, context))
            for look in step.endpoint:
                with self._clock(_name(step.number, look)):
                    for declared in subject.endpoints:
                        _run(attempt(look, declared, context))
        with self._clock("registration, AGTP-API"):
            for declared in subject.endpoints:
                _run(check_contract(declared.endpoint, context.catalog, context.policies))

    def rows(self) -> Iterator[str]:
        """Return a line for each step, longest first."""
        total = sum(self._seconds.values())
        yield f"{total * 1000:9.1f} ms  {self._documents} documents, each step measured by itself"
        for name, seconds in sorted(self._seconds.items(), key=lambda pair: -pair[1]):
            yield f"{seconds * 1000:9.1f} ms  {name}"

    @contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self._seconds[name] += perf_counter() - start


def _run(findings: Iterable[object]) -> None:
    """Make a check run: it finds something only while its findings are taken."""
    deque(findings, maxlen=0)


def _name(number: int, check: Callable[..., object]) -> str:
    module = check.__module__.rpartition(".")[2]
    return f"pass {number}, {module}.{check.__name__.lstrip('_')}"
