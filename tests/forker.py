"""A process that has imported bespeak, and forks a new one for every command or script.

Each spends most of its time on imports and on giving back their memory at its end. A forked process is a process
like any other, with arguments, folder, environment, files and exit code of its own, without these two. The workers of a
server that was forked are forked too.

Run as a script, this module forks: it imports nothing of the tests. `tests.warm` starts it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

AT_START: Final = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "OPENSSL_")
"""Beginnings of variables that a process reads when it starts, so that a forked one does not."""


def acts_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a process reads when it starts."""
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


def ask(
    address: str,
    arguments: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    files: Sequence[int] = (0, 1, 2),
    new_session: bool = False,
) -> socket.socket:
    """Ask for a process with these files; its id and later its status arrive on the connection.

    The arguments are those of `python`: `-m MODULE ...`, `-c CODE ...` or `SCRIPT ...`.
    A process whose connection is closed is killed.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    message = {"arguments": list(arguments), "cwd": cwd, "env": dict(env), "new_session": new_session}
    socket.send_fds(connection, [json.dumps(message).encode()], files)
    return connection


def run_command(address: str, at_start: Mapping[str, str], *program: str) -> NoReturn:
    """Run a program with the arguments of this process, and end as it ends."""
    arguments = [*program, *sys.argv[1:]]
    if acts_at_start(os.environ) != at_start:
        os.execv(sys.executable, [sys.executable, *arguments])
    cwd = os.getcwd()  # noqa: PTH109 - to import pathlib takes longer than all the rest
    with ask(address, arguments, cwd=cwd, env=os.environ) as connection:
        pid = int(connection.recv(16))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda passed, _: os.kill(pid, passed))
        code = os.waitstatus_to_exitcode(int(connection.recv(16)))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


class Forker:
    """Forks a process for each message that arrives."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(address)
        self._listener.listen(64)
        self._ended, self._noted = socket.socketpair()
        self._noted.setblocking(False)
        self._forked: dict[socket.socket, int] = {}

    def run(self) -> list[str] | None:
        """Fork until standard input ends; return the arguments of a new process in that process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the processes that are forked
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._noted.fileno())
        while True:
            ready, _, _ = select.select([0, self._listener, self._ended, *self._forked], [], [])
            if self._listener in ready:
                connection, _ = self._listener.accept()
                message, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
                pid = os.fork()
                if not pid:
                    connection.close()
                    return self._become(files, **json.loads(message))
                for file in files:
                    os.close(file)
                connection.send(b"%d" % pid)
                self._forked[connection] = pid
            for connection in self._forked.keys() & {*ready}:
                os.kill(self._forked[connection], signal.SIGKILL)
            if self._ended in ready:
                self._ended.recv(4096)
                self._report()
            if 0 in ready:
                return None

    def _report(self) -> None:
        while self._forked:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if not ended:
                break
            connection = next(connection for connection, pid in self._forked.items() if pid == ended)
            del self._forked[connection]
            with connection, suppress(OSError):  # whoever has started it may be gone
                connection.send(b"%d" % status)

    def _become(
        self, files: Sequence[int], *, arguments: list[str], cwd: str, env: dict[str, str], new_session: bool
    ) -> list[str]:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for held in (self._listener, self._ended, self._noted, *self._forked):
            held.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        if new_session:
            os.setsid()
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        return arguments


def main(address: str) -> None:
    """Import all of bespeak, and fork."""
    import gc
    import importlib
    import pkgutil

    import bespeak

    gc.disable()
    for module in pkgutil.walk_packages(bespeak.__path__, "bespeak."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # All objects are old then, and none is frozen: the next collections need not look at them.
    gc.freeze()
    gc.unfreeze()
    gc.enable()
    forker = Forker(address)
    os.write(1, b"ready\n")
    arguments = forker.run()
    if arguments is not None:
        _run(arguments)


def _run(arguments: list[str]) -> None:
    """Do what `python` does with these arguments, and end without giving the memory back."""
    _fork_what_is_spawned()
    code: Any = 0
    try:
        _run_main(*arguments)
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            raise
    _end(code)


def _end(code: int) -> NoReturn:
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as the interpreter does at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run_main(first: str, *others: str) -> None:
    import runpy

    cwd = os.getcwd()  # noqa: PTH109 - as above
    if first == "-m":
        sys.argv[1:] = others[1:]
        sys.path[0] = cwd
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *others[1:]]
        sys.path[0] = ""
        exec(compile(others[0], "<string>", "exec", dont_inherit=True), {"__name__": "__main__"})
    else:
        sys.argv[:] = [first, *others]
        sys.path[0] = os.path.dirname(os.path.join(cwd, first))  # noqa: PTH118, PTH120 - as above
        runpy.run_path(first, run_name="__main__")


def _fork_what_is_spawned() -> None:
    """Let multiprocessing fork where it would start an interpreter; the new process imports again what this one will.

    The server has no event loop and no thread when it starts a worker.
    """
    from multiprocessing import util

    began_with, spawn = {*sys.modules}, util.spawnv_passfds

    def fork(path: Any, arguments: Sequence[Any], files: Sequence[int]) -> int:
        if "--multiprocessing-fork" not in arguments:
            return spawn(path, arguments, files)
        pid = os.fork()
        if not pid:
            _work(str(arguments[arguments.index("-c") + 1]), files, began_with)
        return pid

    util.spawnv_passfds = fork


def _work(code: str, files: Sequence[int], began_with: set[str]) -> NoReturn:
    """Become a worker: keep nothing of the process that was forked but these files and what bespeak imports."""
    import atexit
    import gc
    import site
    import traceback
    import weakref

    ended = 1
    try:
        gc.freeze()  # what is left of the other process must not close files of this one
        atexit._clear()
        weakref.finalize._registry.clear()  # type: ignore[attr-defined] # not public, as the next
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        before = 3
        for file in (*sorted(files), os.sysconf("SC_OPEN_MAX")):
            os.closerange(before, file)
            before = file + 1
        installed = (sys.base_prefix, *site.getsitepackages())
        for name in sys.modules.keys() - began_with:
            if not (getattr(sys.modules[name], "__file__", None) or sys.prefix).startswith(installed):
                del sys.modules[name]
        sys.argv[:] = ["-c", "--multiprocessing-fork"]
        exec(compile(code, "<string>", "exec", dont_inherit=True), {"__name__": "__main__"})
        ended = 0
    except SystemExit as end:
        ended = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - this is the end of the process
        traceback.print_exc()
    _end(ended)


if __name__ == "__main__":
    main(sys.argv[1])
