"""Test starting `bespeak lsp`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests import warm
from tests.process import bespeak

pytestmark = pytest.mark.process

WITHOUT = """
import sys
sys.modules["pygls"] = None
sys.argv = ["bespeak", "lsp"]
from bespeak.app.cli.main import main
main()
"""


def message(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def test_missing_extra_is_reported_with_the_install_command() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'bespeak[lsp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_protocol_session_exits_with_zero() -> None:
    said = (
        message(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
        + message(method="initialized", params={})
        + message(id=2, method="shutdown")
        + message(method="exit")
    )
    done = subprocess.run([warm.command(), "lsp"], input=said, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Content-Length: ")
    assert b'"serverInfo"' in done.stdout


def test_exit_without_shutdown_exits_with_one() -> None:
    said = message(id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    done = subprocess.run(
        [warm.command(), "lsp"],
        input=said + message(method="exit"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1


def test_help_describes_the_command() -> None:
    assert "Language Server Protocol" in bespeak("lsp", "--help").stdout
