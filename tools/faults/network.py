"""Machines of one computer: network namespaces, each behind a router that can drop packets silently.

The database and the clients stay where they are. A machine reaches the database through its router, and so do clients
the machine. A router drops what passes between its machine and the database when it is told to: nobody gets an error,
and no connection is closed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

_NET: Final = "198.18"
"""Addresses for tests of networks (RFC 2544)."""


def why_no_network() -> str | None:
    """Return the reason why machines cannot be made here, or None."""
    if sys.platform != "linux":
        return "network namespaces exist on Linux only"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the program ip (iproute2) is not installed"
    try:
        Network(1).remove()
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip() or error}"
    return None


@dataclass(frozen=True)
class Machine:
    """A network namespace and how it is reached."""

    number: int
    namespace: str
    router: str
    link: str
    """Interface towards the router."""

    @property
    def address(self) -> str:
        """Address of the machine."""
        return f"{_NET}.{2 * self.number + 1}.2"

    @property
    def database(self) -> str:
        """Address at which it finds the database."""
        return f"{_NET}.{2 * self.number}.3"


class Network:
    """Machines with their routers; `remove` takes everything away."""

    def __init__(self, machines: int) -> None:
        self.machines = [self._machine(number) for number in range(1, machines + 1)]
        self._cut: set[int] = set()
        try:
            for machine in self.machines:
                self._connect(machine)
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def cut(self, machine: Machine) -> None:
        """Drop everything between a machine and the database from now on."""
        self._rule("add", machine)
        self._cut.add(machine.number)

    def heal(self, machine: Machine) -> None:
        """Let everything pass again."""
        if machine.number in self._cut:
            self._cut.remove(machine.number)
            self._rule("del", machine)

    def remove(self) -> None:
        """Remove the namespaces, and with them the interfaces."""
        for machine in self.machines:
            # The link first: those of a namespace may outlive it for a moment, and the next run takes the same name.
            for what in (("link", machine.link), ("netns", machine.namespace), ("netns", machine.router)):
                with suppress(subprocess.CalledProcessError):  # it was not made
                    _ip(what[0], "del", what[1])

    def _machine(self, number: int) -> Machine:
        name = f"bespeak-{os.getpid()}-{number}"
        return Machine(number, name, f"{name}-router", f"bf{number}-{os.getpid()}")

    def _connect(self, machine: Machine) -> None:
        outer, inner = f"{_NET}.{2 * machine.number}", f"{_NET}.{2 * machine.number + 1}"
        router, within = ("-n", machine.router), ("-n", machine.namespace)
        for name in (machine.router, machine.namespace):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("link", "add", machine.link, "type", "veth", "peer", "name", "outer", "netns", machine.router)
        _ip(*router, "link", "add", "inner", "type", "veth", "peer", "name", "eth", "netns", machine.namespace)
        _ip("addr", "add", f"{outer}.1/24", "dev", machine.link)
        _ip("addr", "add", f"{machine.database}/24", "dev", machine.link)
        _ip(*router, "addr", "add", f"{outer}.2/24", "dev", "outer")
        _ip(*router, "addr", "add", f"{inner}.1/24", "dev", "inner")
        _ip(*within, "addr", "add", f"{machine.address}/24", "dev", "eth")
        _ip("link", "set", machine.link, "up")
        for place, name in ((router, "outer"), (router, "inner"), (within, "eth")):
            _ip(*place, "link", "set", name, "up")
        _ip("route", "add", f"{inner}.0/24", "via", f"{outer}.2")
        _ip(*within, "route", "add", "default", "via", f"{inner}.1")
        _ip("netns", "exec", machine.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def _rule(self, action: str, machine: Machine) -> None:
        for source, target in ((machine.address, machine.database), (machine.database, machine.address)):
            _ip("-n", machine.router, "rule", action, "from", source, "to", target, "blackhole")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
