"""What the story needs: the agency and its partners as servers in a folder of their own, and agents that call them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bespeak import connect_sync

BESPEAK = [sys.executable, "-m", "bespeak"]
TRAVELLER = ["traveller:read", "payments:purchase", "activation:run"]
AGENTS = {
    "ada": TRAVELLER,
    "ben": TRAVELLER,
    "cleo": TRAVELLER,
    "visa": ["mail:read"],
    "manager": ["sales:read", "activation:run"],
}
"""Agents that the agency knows, and their scopes."""


class Server:
    """A service in a process of its own."""

    def __init__(self, target: Path, partners: dict[str, str] | None = None) -> None:
        options = ["--agtp", "127.0.0.1:0", "--store", str(target.with_suffix(".db")), "--log", "error"]
        command = [*BESPEAK, "serve", str(target), *options]
        environment = {**os.environ, **(partners or {})}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603

    def address(self) -> str:
        """Wait until the service can be called; return its address."""
        assert self.process.stdout is not None
        announced = self.process.stdout.readline().split()  # AGTP  agtp://127.0.0.1:PORT  ...
        return announced[1] if announced else sys.exit("a server does not start; it has told why")

    def stop(self) -> None:
        """Kill the process, also one that is stopped; do nothing if it is gone."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Agency:
    """The agency in its folder, its agents, and the services at which it books."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-travel-")))
        self.folder = place / "travel"
        shutil.copytree(Path(__file__).parent, self.folder, ignore=shutil.ignore_patterns("*.sqlite3*", "*.db*"))
        self._partners = {name: self._start(self.folder / f"partners/{name}.py") for name in ("inn", "airline", "cars")}
        settings = (self.folder / "bespeak.toml").read_text("utf-8").replace("# signing_key", "signing_key")
        (self.folder / "bespeak.toml").write_text(settings)
        self.run("keys", "new", "--out", str(self.folder / "server.pem"))
        self.ids = {name: self._register(name, scopes) for name, scopes in AGENTS.items()}
        account = '\n[[payments.accounts]]\nprincipal = "{}"\ncurrency = "EUR"\nopening = "2000.00"\n'
        (self.folder / "bespeak.toml").write_text(settings + "".join(map(account.format, self.ids.values())))
        self.addresses = {f"TRAVEL_{name.upper()}": server.address() for name, server in self._partners.items()}
        self.open()

    def _start(self, target: Path, partners: dict[str, str] | None = None) -> Server:
        server = Server(target, partners)
        self._stack.callback(server.stop)
        return server

    def _register(self, name: str, scopes: list[str]) -> str:
        options = [option for scope in scopes for option in ("--scope", scope)]
        return self.run("agents", "add", "--name", name, *options, str(self.folder)).split()[1]

    def open(self) -> None:
        """Start the agency, and connect the agents with it."""
        self.server = self._start(self.folder, self.addresses)
        self.uri = self.server.address()
        connect = self._stack.enter_context
        self.agents = {name: connect(connect_sync(self.uri, agent_id=one)) for name, one in self.ids.items()}

    def signal(self, partner: str, number: int) -> None:
        """Stop a partner, or let it go on."""
        self._partners[partner].process.send_signal(number)

    def run(self, *arguments: str) -> str:
        """Run a command of bespeak on the store of the agency, and return what it prints."""
        place = [] if arguments[0] == "keys" else ["--store", str(self.folder.with_suffix(".db"))]
        done = subprocess.run([*BESPEAK, *arguments, *place], check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
        return done.stdout
