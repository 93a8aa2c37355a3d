"""A warm start differs from a cold one in nothing but its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import forker, warm

pytestmark = pytest.mark.process

APP = """
import os, signal, sys, threading, __main__
print(os.getcwd(), os.environ.get("WORD"), os.environ.get("HOME"), sys.argv, sys.path[0], sys.stdin.read())
print(sorted(os.listdir("/dev/fd")), type(signal.getsignal(signal.SIGINT)), signal.getsignal(signal.SIGCHLD))
print(threading.enumerate()[0].name, __main__.__spec__.name, __name__, os.getsid(0) == os.getpid())
sys.stdout.flush()
raise ValueError("the end of it")
"""
STREAMS: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def run(process: subprocess.Popen[str], given: str = "") -> tuple[int, str, str]:
    output, errors = process.communicate(given, timeout=60)
    return process.returncode, output, errors


def cold(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "bespeak", *arguments], text=True, **options)


@pytest.mark.parametrize("session", [False, True])
def test_a_process_has_its_own_arguments_folder_environment_and_files(tmp_path: Path, session: bool) -> None:
    (tmp_path / "app.py").write_text(APP)
    env = {name: value for name, value in os.environ.items() if name != "HOME"} | {"WORD": "a word"}
    options = {**STREAMS, "cwd": tmp_path, "env": env, "start_new_session": session}
    arguments = ["discover", "app.py"]
    code, output, errors = run(warm.start(arguments, **options), "from the input")
    assert (code, output, errors) == run(cold(arguments, **options), "from the input")
    assert code == 2
    assert f"{tmp_path} a word None" in output
    assert "from the input" in output
    assert "the end of it" in errors


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["lint", "-"], 1), (["nonsense"], 2)])
def test_a_program_ends_with_the_code_of_the_command(arguments: list[str], code: int) -> None:
    process = subprocess.Popen([warm.command(), *arguments], text=True, **STREAMS)
    assert run(process, "nonsense") == run(cold(arguments, **STREAMS), "nonsense")
    assert process.returncode == code


def test_a_process_can_be_killed() -> None:
    process = warm.start(["lint", "-"], env=os.environ, **STREAMS)  # it waits for its input
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.001)
    process.kill()
    assert process.wait(60) == process.poll() == -signal.SIGKILL
    process.communicate()


def test_a_program_passes_signals_on() -> None:
    process = subprocess.Popen([warm.command(), "lint", "-"], text=True, **STREAMS)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (-signal.SIGINT, 130)
    process.communicate()


def test_a_process_ends_with_whoever_has_started_it() -> None:
    (given, kept), (output, said) = os.pipe(), os.pipe()
    connection = forker.ask(
        warm.address(), ["-m", "bespeak", "lint", "-"], cwd="/", env=os.environ, files=(given, said, said)
    )
    assert int(connection.recv(16)) > 0
    os.close(given)
    os.close(said)
    connection.close()
    with os.fdopen(output) as stream:
        assert stream.read() == ""  # it has not been told that the input ended
    os.close(kept)


def test_variables_that_act_at_the_start_of_a_process_need_a_cold_one() -> None:
    env = {**os.environ, "PYTHONOPTIMIZE": "1"}
    started = [warm.start(["--version"], env=given, **STREAMS) for given in (os.environ, env)]
    assert [isinstance(process, warm.WarmProcess) for process in started] == [True, False]
    assert run(started[0]) == run(started[1])
    done = subprocess.run([warm.command(), "--version"], env=env, capture_output=True, text=True, check=True)
    assert "0.1.0" in done.stdout
