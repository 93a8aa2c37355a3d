"""`bespeak console`: serve a target on this machine with its console."""

from __future__ import annotations

from typing import Any, Final

import click

from bespeak.app.cli.serve import announce
from bespeak.app.server.log import LEVELS, log_to_stderr
from bespeak.app.server.serving import serve_target
from bespeak.app.server.settings import plan_settings
from bespeak.app.server.target import load_target
from bespeak.protocol.address import parse_address
from bespeak.terminal.console import choice_option, print_findings

_HTTP: Final = "127.0.0.1:8080"


@click.command()
@click.argument("target")
@click.option("--agtp", "address", metavar="HOST:PORT", help="Address for AGTP.  [default: 127.0.0.1:4480]")
@click.option("--http", metavar="HOST:PORT", default=_HTTP, show_default=True, help="Address for HTTP and the console.")
@click.option("--mcp", is_flag=True, help="Serve MCP at /mcp too.")
@click.option("--a2a", is_flag=True, help="Serve A2A at /a2a too.")
@click.option(
    "--store", metavar="PLACE", help="Store: a file, memory, or postgresql://...  [default: bespeak.db beside TARGET]"
)
@choice_option("--log", "level", of=LEVELS, default="warning", help="Log level on standard error.")
def console(target: str, level: str, **options: Any) -> int:
    """Serve TARGET on this machine and show it in the browser: read, try and watch it.

    TARGET is what `bespeak serve` takes. The command prints a link with a token that is valid until it ends; without
    the token, the page shows nothing. Calls from the page pass every gate, and the page shows which one refused.

    Examples:

    \b
    bespeak console examples/hotel
    bespeak console app.py --http 127.0.0.1:9000 --store memory
    """
    for name in ("address", "http"):
        given = options[name]
        if given is not None and not parse_address(given).is_loopback:
            raise click.UsageError(
                f"{given} is not an address of this machine only; to let others in, write [console] enabled = true "
                "and [auth] modes into bespeak.toml, and run bespeak serve."
            )
    log_to_stderr(level)
    loaded = load_target(target)
    settings = plan_settings(target, loaded.document, console=True, workers=1, log_level=level, **options)
    return serve_target(loaded, settings, report=print_findings, ready=announce)
