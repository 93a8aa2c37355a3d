"""Fixtures every test may use. Async tests carry `pytest.mark.anyio` and run on uvloop."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
import httpx._transports.default as httpx_transports
import pytest
from hypothesis import settings
from tests.postgres import postgres_dsn, postgres_server, postgres_store
from tests.stateful import diagonal
from tests.tables import as_loop, cases_are_selected

from bespeak.state.store import sqlite

__all__ = ["anyio_backend", "postgres_dsn", "postgres_server", "postgres_store"]

# How long an example takes says more about the machine than about the code; what must be fast is measured in bench.
settings.register_profile("thorough", deadline=None)
settings.register_profile("usual", deadline=None, max_examples=50)
settings.register_profile("quick", deadline=None, max_examples=5)
settings.load_profile("usual")

if sys.dont_write_bytecode:
    # A process that compiles every module anew takes twice its time; this keeps bytecode out of the source tree too.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

_MEMORY: Final = Path("/dev/shm")
if "TMPDIR" not in os.environ and _MEMORY.is_dir():
    # Tests that write stores wait for the disk half of their time. No test shows what a power failure leaves.
    system = os.statvfs(_MEMORY)
    if system.f_bavail * system.f_frsize > 4 << 30 and not system.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# To load what other packages add to pytest takes two seconds in each run of it that a test starts.
os.environ.setdefault("PYTEST_ADDOPTS", "-p no:schemathesis -p no:langsmith_plugin -p no:platformdirs")

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    # A run in the background ignores these, and so would every process that a test starts and wants to interrupt.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

if importlib.util.find_spec("sniffio") is None:
    # httpcore tries to import it several times per request, and to find out that it is missing takes longer each time
    # than to answer.
    sys.modules["sniffio"] = None  # type: ignore[assignment] # this is how an import is declared to fail


def _shared_ssl_context(
    verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True
) -> ssl.SSLContext:
    """Read the public authorities once: that takes longer than the requests of a client, and no test needs them."""
    if verify is not True or cert is not None or (trust_env and {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys()):
        return httpx.create_ssl_context(verify, cert, trust_env)
    return _default_ssl_context()


_default_ssl_context = cache(httpx.create_ssl_context)
httpx_transports.create_ssl_context = _shared_ssl_context  # type: ignore[attr-defined] # imported there, not public

# Servers on one SQLite store look for each other's changes this often; the usual second would be a wait in many tests.
sqlite.POLL_SECONDS = 0.02  # type: ignore[misc]

# Collecting makes objects that all stay: to look for garbage among them takes a quarter of the time.
gc.disable()

_STARTS: Final = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
_in_quick_test = False


def pytest_xdist_auto_num_workers() -> int:
    # A quarter of the time is spent waiting for processes and deadlines: one worker more than cores fills it.
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    # Together these two make every object old, and leave none frozen: a server that starts counts those one by one.
    gc.freeze()
    gc.unfreeze()
    # To look through all of them takes a second: young garbage is found less often, old garbage seldom and at the end.
    gc.set_threshold(10_000, 10, 1000)
    gc.enable()


def pytest_sessionfinish() -> None:
    # pytest looks twice for garbage whose end was an error, and the interpreter once more: once is enough.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Item | None:
    if not name.startswith("test") or not isinstance(collector, pytest.Module) or cases_are_selected(collector.config):
        return None
    if any(collector.iter_markers(name="process")) or (loop := as_loop(obj)) is None:
        return None
    item: pytest.Function = pytest.Function.from_parent(collector, name=name, callobj=loop)
    return None if item.fixturenames else item  # a fixture of the module is for each case


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not cases_are_selected(config):
        items[:] = diagonal(items, both=settings.get_current_profile_name() != "quick")
    # Every run tries other examples. `thorough` tries as many in one run as a test asks for.
    most = None if settings.get_current_profile_name() == "thorough" else settings.default.max_examples
    for item in items:
        if "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.process)
        # A profile gives way to the settings of a test, and Hypothesis offers no other way to lower those.
        test: Any = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if most is not None and own is not None and own.max_examples > most:
            test._hypothesis_internal_use_settings = settings(own, max_examples=most)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Let only tests with the mark `process` start processes, so that `make quick` starts none."""
    global _in_quick_test  # noqa: PLW0603 - an audit hook takes no arguments of ours
    _in_quick_test = item.get_closest_marker("process") is None
    try:
        return (yield)
    finally:
        _in_quick_test = False


def _forbid_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if _in_quick_test and event in _STARTS:
        raise AssertionError(f"a test without @pytest.mark.process starts one: {event} {arguments[:2]}")


sys.addaudithook(_forbid_processes)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": True})
