"""`bespeak serve`: run a server; with `--reload` in a child process that restarts when a file changes.

`bespeak console` serves a target on this machine with its console; `bespeak extension` runs a command that an extension
of the author adds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final

import click

from bespeak.app.cli.main import main
from bespeak.app.server.assembly import Assembled
from bespeak.app.server.log import FORMATS, LEVELS, log_findings, log_to_stderr
from bespeak.app.server.serving import STOP_SIGNALS, serve_target
from bespeak.app.server.settings import Settings, is_described, plan_settings
from bespeak.app.server.target import load_target
from bespeak.protocol.address import parse_address
from bespeak.terminal import PATH, CommandFailedError
from bespeak.terminal.console import choice_option, plural, print_findings
from bespeak.terminal.deployment import names_attribute


@click.command()
@click.argument("target")
@click.option("--agtp", "address", metavar="HOST:PORT", help="Address for AGTP.  [default: 127.0.0.1:4480]")
@click.option("--http", metavar="HOST:PORT", help="Address for HTTP; the default port is 8080.")
@click.option("--mcp", is_flag=True, help="Serve MCP at /mcp of the HTTP face.")
@click.option("--a2a", is_flag=True, help="Serve A2A at /a2a of the HTTP face.")
@click.option("--operations", metavar="HOST:PORT", help="Address for /healthz and /metrics; the default port is 9464.")
@click.option("--workers", type=int, help="Number of worker processes.  [default: 1]")
@click.option("--cert", "certificate", type=PATH, help="Certificate chain (PEM), for TLS 1.3.")
@click.option("--key", type=PATH, help="Private key of the certificate (PEM).")
@click.option(
    "--store", metavar="PLACE", help="Store: a file, memory, or postgresql://...  [default: bespeak.db beside TARGET]"
)
@click.option("--insecure", is_flag=True, help="Allow plain TCP and unauthenticated agents from other hosts.")
@click.option(
    *("--log", "level"),
    type=click.Choice((*LEVELS, "json")),
    help="Log level on standard error; info logs a line per answer, json the same as JSON.  "
    "[default: info on a terminal, else warning]",
)
@choice_option("--log-format", of=FORMATS, default="text", help="Log format: text, or one JSON object per line.")
@click.option("--reload", is_flag=True, help="Restart when a file of TARGET changes; for development.")
@click.option("--strict", is_flag=True, help="Do not start if an endpoint is invalid.")
def serve(target: str, level: str | None, log_format: str, reload: bool, **options: Any) -> int:
    """Serve TARGET over AGTP, and optionally HTTP, MCP and A2A, until SIGTERM or Ctrl-C.

    TARGET is a folder (bespeak.toml, endpoints/*.toml), an .agis, .toml or .py file, or module:app. The bespeak.toml
    beside a .py file is read, for module:app the one in this folder; where it contradicts the app, nothing starts.
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
        if (options["workers"] or 1) > 1:
            raise click.UsageError("--reload serves with one worker; leave --workers out.")
        return serve_reloading(target, [one for one in sys.argv[1:] if one != "--reload"])
    if level == "json":
        level, log_format = "info", "json"
    level = level or ("info" if sys.stderr.isatty() else "warning")
    log_to_stderr(level, log_format)
    loaded = load_target(target)
    settings = plan_settings(target, loaded.document, log_level=level, log_format=log_format, **options)
    report = log_findings if log_format == "json" else print_findings
    return serve_target(loaded, settings, report=report, ready=announce)


def announce(assembled: Assembled, settings: Settings) -> None:
    """Print one line for each transport once it accepts connections."""
    secured = settings.certificate is not None
    registrar = assembled.registrar
    own = sum(not endpoint.builtin for endpoint in registrar.endpoints.values())
    counts = f"{plural(own, 'endpoint')}, {plural(settings.workers, 'worker')}"
    click.echo(f"AGTP  agtp://{settings.address}  {'TLS 1.3' if secured else 'plain TCP'}, {counts}")
    if settings.http is not None:
        here = f"{'https' if secured else 'http'}://{settings.http}"
        described = is_described(registrar.policies, registrar.endpoints.values())
        notes = {
            "described at /.well-known/ai" if described else "no public documents": True,
            "MCP at /mcp": settings.mcp.enabled,
            "A2A at /a2a": settings.a2a.enabled,
            "console at /console": settings.console and settings.console_token is None,
            f"public URL {settings.web.url}": settings.web.url not in ("", here),
        }
        click.echo(f"HTTP  {here}  {', '.join(note for note, holds in notes.items() if holds)}")
        if settings.console_token is not None:
            # Browsers do not send the part behind the number sign, so no log has the token.
            click.echo(f"OPEN  {here}{settings.web.prefix}/console/#token={settings.console_token}")
    if settings.operations is not None:
        metrics = ", /metrics" if find_spec("prometheus_client") else "; /metrics needs pip install 'bespeak[metrics]'"
        click.echo(f"OPS   http://{settings.operations}  /healthz{metrics}")
    sys.stdout.flush()


_SUFFIXES: Final = (".py", ".toml", ".agis", ".agent", ".yaml", ".yml")
"""Files that make a service. A handler may write others, such as .json, without causing a restart."""
_INTERVAL: Final = 0.4  # seconds between two looks at the files
_PATIENCE: Final = 5.0  # seconds that running requests have to finish before a restart

Snapshot = dict[str, tuple[int, int]]


def serve_reloading(target: str, arguments: list[str]) -> int:
    """Run `bespeak` with these arguments until a stop signal; restart it after every change. Return the exit code."""
    base = _base(target)
    click.echo(f"watching {base}; the server restarts when a file changes", err=True)
    stopping = threading.Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    while True:
        seen = snapshot(base)
        child = _start(arguments)
        changed = _next_change(base, seen, child, stopping)
        child.terminate()
        child.join(_PATIENCE)
        if child.is_alive():
            child.kill()
            child.join()
        if changed is None:
            return 0
        click.echo(f"reloading: {os.path.relpath(changed, base)} changed", err=True)


def snapshot(base: Path) -> Snapshot:
    """Return modification time and size of every file that can be part of a service."""
    found: Snapshot = {}
    for place in _files(base):
        try:
            state = os.stat(place)  # noqa: PTH116 - a path object for each file costs more than the call
        except OSError:  # removed in the meantime
            continue
        found[place] = (state.st_mtime_ns, state.st_size)
    return found


def _files(base: Path) -> Iterator[str]:
    for folder, inner, names in os.walk(base):
        # Hidden folders, caches and virtual environments belong to tools.
        inner[:] = [
            one
            for one in inner
            if not one.startswith((".", "__pycache__", "node_modules"))
            and not os.path.exists(os.path.join(folder, one, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        ]
        yield from (os.path.join(folder, name) for name in names if name.endswith(_SUFFIXES))  # noqa: PTH118


def _next_change(base: Path, seen: Snapshot, child: SpawnProcess, stopping: threading.Event) -> str | None:
    """Wait for a change and return its file; return None when the server is to stop."""
    alive = True
    while not stopping.is_set():
        if alive and wait([child.sentinel], timeout=_INTERVAL):
            alive = False
            child.join()
            if child.exitcode == 0:
                return None
            click.echo(f"the server ended with code {child.exitcode}; it starts again after a change", err=True)
        elif not alive:
            stopping.wait(_INTERVAL)
        changed = sorted(seen.items() ^ snapshot(base).items())
        if changed:
            return changed[0][0]
    return None


def _start(arguments: list[str]) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(arguments,))
    # The child is told to stop by its parent; Ctrl-C reaches both.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.start()
    signal.signal(signal.SIGINT, interrupt)
    return process


def _run(arguments: list[str]) -> None:
    sys.argv[1:] = arguments
    main()


def _base(target: str) -> Path:
    path = Path(target.rpartition(":")[0] if names_attribute(target) else target)
    if path.is_dir():
        return path
    return path.parent if path.is_file() else Path.cwd()


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("target")
@click.argument("arguments", metavar="[COMMAND [ARGS]...]", nargs=-1, type=click.UNPROCESSED)
def extension(target: str, arguments: tuple[str, ...]) -> Any:
    """Run a COMMAND of an extension of TARGET; without one, list them.

    \b
    Example:
    bespeak extension reminders.py list
    """
    commands = {one.name: one for extension in load_target(target).service.extensions for one in extension.commands}
    if not commands:
        raise CommandFailedError(f"no extension of {target} has commands; see `App(extensions=[...])`")
    group = click.Group("extension", commands=commands, help=f"Commands of the extensions of {target}.")
    shown = list(arguments) or ["--help"]
    return group.main(shown, prog_name=f"bespeak extension {target}", standalone_mode=False, obj=target)


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
