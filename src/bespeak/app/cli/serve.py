"""`bespeak serve`: run a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bespeak.app.cli.console import print_findings
from bespeak.app.server.assembly import Assembled
from bespeak.app.server.log import FORMATS, LEVELS, log_findings, log_to_stderr
from bespeak.app.server.public_url import is_described
from bespeak.app.server.serving import serve_target
from bespeak.app.server.settings import Settings, plan_settings
from bespeak.app.server.target import load_target


@click.command()
@click.argument("target")
@click.option("--agtp", "address", metavar="HOST:PORT", help="Address for AGTP.  [default: 127.0.0.1:4480]")
@click.option("--http", metavar="HOST:PORT", help="Address for HTTP; the default port is 8080.")
@click.option("--mcp", is_flag=True, help="Serve MCP at /mcp of the HTTP face.")
@click.option("--a2a", is_flag=True, help="Serve A2A at /a2a of the HTTP face.")
@click.option("--operations", metavar="HOST:PORT", help="Address for /healthz and /metrics; the default port is 9464.")
@click.option("--workers", type=int, help="Number of worker processes.  [default: 1]")
@click.option("--cert", "certificate", type=click.Path(path_type=Path), help="Certificate chain (PEM), for TLS 1.3.")
@click.option("--key", type=click.Path(path_type=Path), help="Private key of the certificate (PEM).")
@click.option(
    "--store",
    metavar="PLACE",
    help="Store: a file, memory, or postgresql://...  [default: bespeak.db beside TARGET]",
)
@click.option("--insecure", is_flag=True, help="Allow plain TCP and unauthenticated agents from other hosts.")
@click.option(
    "--log",
    "level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="Log level on standard error; info logs refusals, debug logs all responses.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Log format: text, or one JSON object per line.",
)
@click.option("--reload", is_flag=True, help="Restart when a file of TARGET changes; for development.")
@click.option("--strict", is_flag=True, help="Do not start if an endpoint is invalid.")
def serve(target: str, level: str, log_format: str, reload: bool, **options: Any) -> int:
    """Serve TARGET over AGTP, and optionally HTTP, MCP and A2A, until SIGTERM or Ctrl-C.

    TARGET is a folder (bespeak.toml, endpoints/*.toml), an .agis, .toml or .py file, or module:app.
    The handlers of an AGIS document are configured in a bespeak.toml beside it, or are in a module of the same name.
    Endpoints that are invalid or have no handler are reported and skipped; with --strict the server does not start.
    To accept other hosts, TLS and [auth] in bespeak.toml are required.

    Examples:

    \b
    bespeak serve examples/hotel --http 127.0.0.1:8080
    bespeak serve examples/restaurant/menu.agis
    bespeak serve app.py --reload
    bespeak serve rooms --agtp 0.0.0.0:4480 --cert cert.pem --key key.pem --workers 2
    """
    if reload:
        from bespeak.app.cli.reload import serve_reloading  # noqa: PLC0415 - only for development

        if (options["workers"] or 1) > 1:
            raise click.UsageError("--reload serves with one worker; leave --workers out.")
        return serve_reloading(target, [one for one in sys.argv[1:] if one != "--reload"])
    log_to_stderr(level, log_format)
    loaded = load_target(target)
    settings = plan_settings(target, loaded.document, log_level=level, log_format=log_format, **options)
    report = log_findings if log_format == "json" else print_findings
    return serve_target(loaded, settings, report=report, ready=_announce)


def _announce(assembled: Assembled, settings: Settings) -> None:
    """Print one line for each transport once it accepts connections."""
    secured = settings.certificate is not None
    own = sum(not endpoint.builtin for endpoint in assembled.registrar.endpoints.values())
    click.echo(
        f"AGTP  agtp://{settings.address}  {'TLS 1.3' if secured else 'plain TCP'}, "
        f"{own} endpoint{'' if own == 1 else 's'}, {settings.workers} worker{'' if settings.workers == 1 else 's'}"
    )
    if settings.http is not None:
        scheme = "https" if secured else "http"
        here = f"{scheme}://{settings.http}"
        registrar = assembled.registrar
        described = is_described(registrar.policies, registrar.endpoints.values())
        notes = ["described at /.well-known/ai" if described else "no public documents"]
        if settings.mcp.enabled:
            notes.append("MCP at /mcp")
        if settings.a2a.enabled:
            notes.append("A2A at /a2a")
        if settings.web.url and settings.web.url != here:
            notes.append(f"public URL {settings.web.url}")
        click.echo(f"HTTP  {here}  {', '.join(notes)}")
    if settings.operations is not None:
        click.echo(f"OPS   http://{settings.operations}  /healthz, /metrics")
    sys.stdout.flush()
