"""An MCP server behind endpoints: a command that is started on demand, or the address of a running server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.protocol.address import Address, split_url
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.setting import setting
from bespeak.text.reading.table import Table

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
"""A value that is read from the environment when the server starts: `${NAME}`."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _read_names(block: Table, key: str) -> tuple[str, ...]:
    """Read the names of variables. A value would be a secret in a file."""
    names = dict.fromkeys(block.texts(key))
    for name in names:
        if _NAME.fullmatch(name) is None:
            advice = "Write only the name, and set the variable where the server starts."
            block.error(WRONG_VALUE, key, f"each value of `{key}` must be the name of a variable", advice)
    return tuple(name for name in names if _NAME.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """The tool, the prompt or the resource of an MCP server that an endpoint calls, instead of a URL and a method."""

    tool: str = setting("", "The name of the tool, as the server has it.")
    prompt: str = setting("", "The name of a prompt, in place of a tool.")
    resource: str = setting("", "The URI of a resource, in place of a tool.")
    input_digest: str = setting(
        "", "The digest of the tool's input schema at the time of the import. If it has changed, calls are checked."
    )
    command: str = setting("", "The program that speaks MCP over its standard input and output.")
    args: tuple[str, ...] = setting((), "The arguments of the program. `${VAR}` is read from the environment.")
    env: tuple[str, ...] = setting(
        (), "The names of the environment variables that the program receives, beside PATH and HOME.", read=_read_names
    )
    folder: str = setting(
        "", "The working folder of the program. Without it, the folder that the server was started in."
    )
    url: str = setting("", "The address of a server that speaks streamable HTTP: https://, or http:// on this machine.")
    headers: Mapping[str, str] = setting(
        {}, "Headers of every request to `url`. `${VAR}` is read from the environment.", shown=False
    )
    token_file: str = setting("", "The file that holds a bearer token for `url`. It is read for each connection.")

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the server: endpoints with the same key share one process or one session."""
        headers = tuple(sorted(self.headers.items()))
        return (self.command, self.args, self.env, self.folder, self.url, headers, self.token_file)

    @property
    def named(self) -> str:
        """Name of what is called, with its kind."""
        kinds = {"tool": self.tool, "prompt": self.prompt, "resource": self.resource}
        return next((f"{kind} {name}" for kind, name in kinds.items() if name), "tool")

    @property
    def templates(self) -> Iterator[tuple[str, str]]:
        """Values that may contain `${VAR}`, each with its pointer from the table."""
        yield from ((f"/args/{index}", value) for index, value in enumerate(self.args))
        yield "/url", self.url
        yield from ((f"/headers/{name}", value) for name, value in self.headers.items())

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that must be set, each once."""
        found = (name for _, template in self.templates for name in VARIABLE.findall(template))
        return tuple(dict.fromkeys((*self.env, *found)))


def schema_digest(schema: Mapping[str, Any]) -> str:
    """Return a short digest of a schema, the same for every order of its keys."""
    return hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest()[:16]


def is_usable_address(url: str) -> bool:
    """Return True for https:// and for http:// on this machine, where nothing crosses a network.

    AGTP-API 12.3 refuses plain HTTP for the URL of an upstream. A server on the loopback address is reached like one
    over a pipe.
    """
    try:
        parts = split_url(url)
        if not parts.hostname or "@" in parts.netloc or (parts.port is not None and parts.port == 0):
            return False
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and Address(parts.hostname, 0).is_loopback)
