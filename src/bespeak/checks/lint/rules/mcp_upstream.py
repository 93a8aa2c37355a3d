"""H73x: an MCP server behind an endpoint has one address, and no secret is written in the file (AGTP-API 12.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import McpTool
from bespeak.contract.mcp_server import VARIABLE, McpServer, is_usable_address
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

_HANDLER: Final = '[endpoint.handler]\ntype = "external_service"\n\n[endpoint.handler.mcp]\ntool = "book_room"\n'

ADDRESS: Final = Rule(
    ("H731", "mcp-server-address", "MUST", "AGTP-API 12.3"),
    "An MCP server is either a command or a URL that is https://, or http:// on this machine.",
    why="With both it is unclear which server is called. Plain HTTP would send inputs and tokens over a network.",
    bad=f'{_HANDLER}url = "http://tools.example/mcp"\n',
    good=f'{_HANDLER}url = "https://tools.example/mcp"\n',
    notation="toml",
)
KEYS: Final = Rule(
    ("H732", "mcp-key-without-effect", "MUST", "AGTP-API 12.3"),
    "args, env and folder belong to a command; headers and token_file belong to a URL.",
    why="The key would be ignored, and the server would be called without what it needs.",
    bad=f'{_HANDLER}url = "https://tools.example/mcp"\nenv = ["TOOLS_KEY"]\n',
    good=(f'{_HANDLER}url = "https://tools.example/mcp"\nheaders = {{ Authorization = "Bearer ${{TOOLS_KEY}}" }}\n'),
    notation="toml",
)
SECRET: Final = Rule(
    ("H733", "mcp-secret-in-file", "SHOULD", "AGTP-API 12.3"),
    "A secret for an MCP server comes from the environment.",
    why="Files are copied and committed to version control; everyone who reads the secret can act as this server.",
    bad=f'{_HANDLER}command = "hotel-mcp"\nargs = ["--api-key=k-48213"]\n',
    good=f'{_HANDLER}command = "hotel-mcp"\nargs = ["--api-key=${{HOTEL_KEY}}"]\n',
    notation="toml",
)

TARGET: Final = Rule(
    ("H734", "mcp-target", "MUST", "AGTP-API 12.3"),
    "A handler for an MCP server names one tool, one prompt or one resource.",
    why="With several names it is unclear what is called.",
    bad=f'{_HANDLER}prompt = "greeting"\ncommand = "hotel-mcp"\n',
    good=f'{_HANDLER}command = "hotel-mcp"\n',
    notation="toml",
)

_OF_COMMANDS: Final = ("args", "env", "folder")
_OF_URLS: Final = ("headers", "token_file")
_SECRET: Final = re.compile(
    r"(?:^|[-_?&])(?:(?:api|access|private|secret)[-_]?)?(?:key|token|secret|password|passwd|credentials?)$",
    re.IGNORECASE,
)
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})
_PREFIXED: Final = re.compile(r"(?:sk|rk|pk|pat|ghp|gho|ghs|glpat|xox[abp]|ntn|sbp|npm)[-_.][A-Za-z0-9_-]{12,}")
"""Keys of services that are recognised by their beginning."""


def check(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the MCP server that a handler names, if it names one."""
    handler = endpoint.handler
    if not isinstance(handler, McpTool):
        return
    server, at = handler.mcp, "/handler/mcp"
    if sum(map(bool, (server.tool, server.prompt, server.resource))) > 1:
        message = "the handler names more than one of tool, prompt and resource"
        yield TARGET.at(endpoint, at, message, "Write one of them.")
    if bool(server.command) == bool(server.url):
        message = "the MCP server has a command and a url" if server.url else "the MCP server has no command and no url"
        yield ADDRESS.at(endpoint, at, message, "Write one of them.")
        return
    if server.url and not is_usable_address(VARIABLE.sub("x", server.url)):
        message = f"{brief(server.url)} is not an https:// URL"
        advice = "Plain HTTP is accepted only for a server on this machine, such as http://127.0.0.1:8000/mcp."
        yield ADDRESS.at(endpoint, f"{at}/url", message, advice)
    owner, unused = ("url", _OF_COMMANDS) if server.url else ("command", _OF_URLS)
    for key in unused:
        if getattr(server, key):
            message = f"`{key}` has no effect, because the MCP server has a {owner}"
            yield KEYS.at(endpoint, f"{at}/{key}", message, "Remove it.")
    for place, name in secrets(server):
        message = f"the value of {name} is written in the file"
        advice = "Write ${VAR}, set the variable where the server starts, and replace the secret."
        yield SECRET.at(endpoint, f"{at}{place}", message, advice)


def secrets(server: McpServer) -> Iterator[tuple[str, str]]:
    """Yield what looks like a secret that is written out: its pointer from the table, and the name of its option."""
    option = ""
    for at, argument in enumerate(server.args):
        name, _, value = argument.partition("=")
        given = value if value and argument.startswith("-") else "" if argument.startswith("-") else argument
        named = name if value and argument.startswith("-") else option
        if given and "${" not in given and (_SECRET.search(named) or _PREFIXED.search(given)):
            yield f"/args/{at}", brief(named or f"argument {at + 1}")
        option = argument if argument.startswith("-") and not value else ""
    for pair in server.url.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        if value and "${" not in value and _SECRET.search(_words(name)):
            yield "/url", brief(name)
    for name, value in server.headers.items():
        if "${" not in value and name.lower() in _SECRET_HEADERS:
            yield f"/headers/{name}", brief(name)


def _words(name: str) -> str:
    """Write `tavilyApiKey` as `tavily_api_key`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
