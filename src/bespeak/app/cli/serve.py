"""`bespeak serve`: a contract, live."""

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
@click.option("--agtp", "address", metavar="HOST:PORT", help="Where to speak AGTP.  [default: 127.0.0.1:4480]")
@click.option("--http", metavar="HOST:PORT", help="Where to speak HTTP as well; without a port, 8080.")
@click.option("--workers", type=int, help="Processes that share the ports.  [default: 1]")
@click.option("--cert", "certificate", type=click.Path(path_type=Path), help="Certificate chain (PEM), for TLS 1.3.")
@click.option("--key", type=click.Path(path_type=Path), help="Private key of the certificate (PEM).")
@click.option(
    "--store",
    metavar="PLACE",
    help="Where state is kept: a file, memory, or postgresql://...  [default: bespeak.db beside TARGET]",
)
@click.option("--insecure", is_flag=True, help="Allow plain TCP and unproven identities beyond this machine.")
@click.option(
    "--log",
    "level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="What goes to standard error; info has every refusal, debug every answer.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Lines for people, or one JSON object a line.",
)
@click.option("--strict", is_flag=True, help="Do not start when an endpoint is not valid.")
def serve(target: str, level: str, log_format: str, **options: Any) -> int:
    """Serve TARGET over AGTP, and over HTTP if asked to, until SIGTERM or Ctrl-C.

    TARGET is a folder (bespeak.toml, endpoints/*.toml), an .agis, .toml or .py file, or module:app.
    An AGIS document is bound to its handlers by a bespeak.toml beside it, or by a module of its name.
    Endpoints that are not valid, or that nothing answers for, are left out and reported; --strict refuses to
    start then. Beyond this machine, TLS and the [auth] of a bespeak.toml are needed.

    Examples:

    \b
    bespeak serve examples/hotel --http 127.0.0.1:8080
    bespeak serve examples/restaurant/menu.agis
    bespeak serve rooms --agtp 0.0.0.0:4480 --cert cert.pem --key key.pem --workers 2
    """
    log_to_stderr(level, log_format)
    loaded = load_target(target)
    settings = plan_settings(target, loaded.document, log_level=level, log_format=log_format, **options)
    report = log_findings if log_format == "json" else print_findings
    return serve_target(loaded, settings, report=report, ready=_announce)


def _announce(assembled: Assembled, settings: Settings) -> None:
    """One line for each face, once it accepts connections."""
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
        told = ["described at /.well-known/ai" if described else "in no public document"]
        if settings.web.url and settings.web.url != here:
            told.append(f"known as {settings.web.url}")
        click.echo(f"HTTP  {here}  {', '.join(told)}")
    sys.stdout.flush()
