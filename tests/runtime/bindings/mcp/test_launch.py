"""Variables of an MCP server are filled in from the environment, and nothing else of it is passed on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from bespeak.contract.handler import UPSTREAM_ERRORS, McpServer
from bespeak.runtime.bindings.mcp.launch import FailureKind, Launch, resolve_server
from bespeak.runtime.bindings.mcp.tool import _ERRORS


def resolved(server: McpServer, environment: dict[str, str]) -> Launch:
    launch = resolve_server(server, environment)
    assert isinstance(launch, Launch)
    return launch


def test_program_gets_only_named_variables_beside_the_usual_ones() -> None:
    server = McpServer(tool="t", command="hotel", args=("--key=${KEY}",), env=("TOKEN",))
    launch = resolved(server, {"PATH": "/bin", "KEY": "k", "TOKEN": "s", "AWS_SECRET": "x"})
    assert launch.command == ("hotel", "--key=k")
    assert dict(launch.environment) == {"PATH": "/bin", "TOKEN": "s"}


def test_missing_variables_are_reported_with_their_places() -> None:
    server = McpServer(tool="t", command="hotel", args=("--key=${KEY}",), env=("TOKEN",))
    faults = resolve_server(server, {})
    assert isinstance(faults, list)
    assert [at for at, _ in faults] == ["/env/0", "/args/0"]
    assert faults[0][1] == "the MCP server needs the environment variable 'TOKEN', which is not set"


def test_secrets_are_not_in_the_repr() -> None:
    server = McpServer(tool="t", url="https://x.example/mcp", headers={"Authorization": "Bearer ${KEY}"})
    assert "sesame" not in repr(resolved(server, {"KEY": "sesame"}))


def test_header_that_cannot_be_sent_is_a_fault() -> None:
    server = McpServer(tool="t", url="https://x.example/mcp", headers={"X-Key": "${KEY}"})
    assert resolve_server(server, {"KEY": "a\nb"}) == [("/headers/X-Key", "the header 'X-Key' cannot be sent")]


def test_token_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    server = McpServer(tool="t", url="https://x.example/mcp", token_file=str(file))
    launch = resolved(server, {})
    assert launch.fault == f"the token in {file} cannot be read"
    file.write_text("sesame\n")
    assert launch.read_headers() == {"Authorization": "Bearer sesame"}
    file.write_text("two\nlines")
    assert launch.read_headers() == "it does not hold a token on one line"


def test_program_and_folder_that_do_not_exist_are_faults(tmp_path: Path) -> None:
    def fault(command: str, folder: Path | str = "") -> str:
        return resolved(McpServer(tool="t", command=command, folder=str(folder)), {"PATH": "/usr/bin:/bin"}).fault

    assert fault("surely-not-installed") == "the program 'surely-not-installed' is not found"
    assert fault("sh", tmp_path / "none") == f"the folder {tmp_path / 'none'} does not exist"
    assert fault(sys.executable) == ""
    (tmp_path / "serve").touch()
    assert fault("serve", tmp_path) == ""


def test_every_failure_is_an_error_that_external_services_declare() -> None:
    assert set(_ERRORS) == set(get_args(FailureKind))
    assert {name for name, _ in _ERRORS.values()} == set(UPSTREAM_ERRORS)
