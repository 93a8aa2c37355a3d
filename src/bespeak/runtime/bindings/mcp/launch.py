"""An MCP server ready to be reached: every `${VAR}` of its description has its value. Its failures as values."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from bespeak.contract.handler import VARIABLE, McpServer
from bespeak.protocol.exchange.headers import is_header_name, is_header_value

_INHERITED: Final = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
)
"""Variables that every program needs and that hold no secrets; the others are passed on only by name."""
_LARGEST_TOKEN: Final = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a connection needs. Values from the environment are excluded from repr."""

    name: str  # name in logs: the program or the host
    command: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_file: str = ""

    @property
    def fault(self) -> str:
        """Why the server cannot be reached, as far as this machine knows; empty if nothing speaks against it."""
        if self.url:
            return "" if isinstance(self.read_headers(), dict) else f"the token in {self.token_file} cannot be read"
        if self.folder and not Path(self.folder).is_dir():
            return f"the folder {self.folder} does not exist"
        found = shutil.which(self.command[0], path=self.environment.get("PATH"))
        if found is None and not (Path(self.folder) / self.command[0]).is_file():
            return f"the program {self.command[0]!r} is not found"
        return ""

    def read_headers(self) -> dict[str, str] | str:
        """Return the headers of a request with the token of the file, or why that cannot be read."""
        if not self.token_file:
            return dict(self.headers)
        try:
            with Path(self.token_file).open(encoding="utf-8") as file:
                token = file.read(_LARGEST_TOKEN).strip()
        except (OSError, UnicodeError) as error:
            return getattr(error, "strerror", None) or "it is not text"
        if not token or not token.isascii() or not is_header_value(token):
            return "it does not hold a token on one line"
        return {**self.headers, "Authorization": f"Bearer {token}"}


def resolve_server(server: McpServer, environment: Mapping[str, str]) -> Launch | list[tuple[str, str]]:
    """Fill in the variables of a server, or return its faults, each with the pointer of its key."""
    faults = [(f"/env/{at}", _unset(name)) for at, name in enumerate(server.env) if not environment.get(name)]
    filled: dict[str, str] = {}
    for at, template in server.templates:
        missing = [name for name in VARIABLE.findall(template) if not environment.get(name)]
        faults += [(at, _unset(name)) for name in missing]
        filled[at] = VARIABLE.sub(lambda found: environment.get(found[1], ""), template)
    headers = {name: filled[f"/headers/{name}"] for name in server.headers}
    faults += [
        (f"/headers/{name}", f"the header {name!r} cannot be sent")
        for name, value in headers.items()
        if not (is_header_name(name) and is_header_value(value) and value.isascii())
    ]
    arguments = tuple(filled[f"/args/{at}"] for at in range(len(server.args)))
    if any("\0" in part for part in (server.command, server.folder, *arguments)):
        faults.append(("/args", "an argument contains a NUL character"))
    if faults:
        return faults
    if server.url:
        url = filled["/url"]
        host = urlsplit(url).hostname or "the server"
        return Launch(name=host, url=url, headers=headers, token_file=server.token_file)
    inherited = {name: environment[name] for name in _INHERITED if name in environment}
    named = {name: environment[name] for name in server.env}
    return Launch(
        name=Path(server.command).name,
        command=(server.command, *arguments),
        environment={**inherited, **named},
        folder=server.folder,
    )


def _unset(name: str) -> str:
    return f"the MCP server needs the environment variable {name!r}, which is not set"


FailureKind = Literal["unreachable", "lost", "timeout", "malformed", "authentication", "refused", "asks", "changed"]
"""Kinds of failures.

unreachable: it could not be started or reached, so nothing was sent. lost: it ended during the call. timeout: it did
not answer. malformed: its answer cannot be read. authentication: it does not accept this server's credential. refused:
it answered with a protocol error. asks: it wants an answer of a user or a model. changed: the tool is gone or takes
another input.
"""


@dataclass(frozen=True, slots=True)
class McpFailure:
    kind: FailureKind
    text: str  # what happened, for the operator's log; it may name hosts and files
    code: int | None = None  # code of a protocol error
    retry_after: int | None = None  # seconds until the server is started again; None if it may be called at once
