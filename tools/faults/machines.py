"""Cut one of two machines off from PostgreSQL, or take away its power, and verify that the other one goes on.

python -m tools.faults.machines --rounds 4

Packets are dropped silently, so that PostgreSQL does not notice. Killing a server on the same machine closes its
connections, which is another fault. This needs Linux and root.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from tests.postgres import PostgresServer, why_not
from tools.faults.ledger import Ledger
from tools.faults.load import load
from tools.faults.network import Machine, Network, why_no_network
from tools.faults.probe import Probe
from tools.faults.proof import Subject, prove, tell
from tools.faults.server import Server

HARMS = ("cuts", "power losses")
_LONGEST_CUT = 12.0
_WITHIN = 6.0
"""Seconds within which the other machine acknowledges every request: PostgreSQL needs 3 to end a lost transaction."""

# Whether a machine is lost inside a transaction is a matter of luck. This makes sure that one is: its rows are those of
# all keys that were sent so far.
_HOLD = """
import asyncio, sys
from bespeak.state.store.postgres_connection import Address

async def hold():
    connection = await Address(sys.argv[1], "full").open()
    await connection.execute("BEGIN")
    await connection.fetch("SELECT 1 FROM idempotency FOR UPDATE")
    print("held", flush=True)
    await asyncio.sleep(3600)

asyncio.run(hold())
"""


def why_not_here() -> str | None:
    """Return the reason why this cannot be run, or None."""
    return why_not() or why_no_network()


class Cluster:
    """A deployment that is served by machines."""

    def __init__(self, subject: Subject, network: Network) -> None:
        self._subject = subject
        self.network = network
        self.one, self.other = network.machines

    def serve(self, machine: Machine) -> Server:
        """Start the server of a machine."""
        options = ("--store", self._place(machine), "--insecure")
        return Server(self._subject.target, *options, host=machine.address, namespace=machine.namespace)

    def cut(self, machine: Machine) -> subprocess.Popen[bytes]:
        """Cut a machine off while it is in a transaction; return the process that has it."""
        command = ["ip", "netns", "exec", machine.namespace, sys.executable, "-c", _HOLD, self._place(machine)]
        holding = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert holding.stdout is not None
        holding.stdout.readline()
        self.network.cut(machine)
        return holding

    def _place(self, machine: Machine) -> str:
        parts = urlsplit(self._subject.place)
        return parts._replace(netloc=f"{parts.username}@{machine.database}:{parts.port}").geturl()


async def harm_again_and_again(
    ledger: Ledger, cluster: Cluster, source: random.Random, *, rounds: int, clients: int
) -> None:
    """Run the load on both machines, harm one of them and probe the other; `rounds` times."""
    network, harmed = cluster.network, cluster.one
    survivor = await asyncio.to_thread(cluster.serve, cluster.other)
    try:
        for number in range(rounds):
            harm = HARMS[number % len(HARMS)]
            server = await asyncio.to_thread(cluster.serve, harmed)
            try:
                async with AsyncExitStack() as stack:
                    for machine, one in ((harmed, server), (cluster.other, survivor)):
                        await stack.enter_async_context(load(ledger, one.port, clients, machine.address))
                    probe = await stack.enter_async_context(Probe(ledger, survivor.port, cluster.other.address))
                    await ledger.wait_for(source.randint(50, 300))
                    holding = await asyncio.to_thread(cluster.cut, harmed)
                    stack.callback(_end, holding)
                    if harm == "power losses":
                        server.kill()
                        _end(holding)
                    await probe.expect_service(source.uniform(1.0, _LONGEST_CUT), _WITHIN)
                    if harm == "cuts":
                        await asyncio.to_thread(network.heal, harmed)
                        healed = Probe(ledger, server.port, harmed.address)
                        await (await stack.enter_async_context(healed)).expect_recovery()
                ledger.counts[harm] += 1
                said = survivor.said() + server.said()
            finally:
                server.kill()
                await asyncio.to_thread(network.heal, harmed)
            if "Traceback" in said:
                ledger.faults.append(f"a server wrote: {said[-2000:]}")
            if ledger.faults:
                return
    finally:
        survivor.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def run(*, rounds: int, clients: int, seed: int, audited: bool = True) -> int:
    """Perform one run and print the result; return the exit code."""
    source = random.Random(seed)
    ledger = Ledger(source)
    with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name, Network(2) as network:
        addresses = ",".join(["127.0.0.1", *(machine.database for machine in network.machines)])
        database = PostgresServer(f"listen_addresses={addresses}")
        try:
            database.trust("198.18.0.0/15")
            subject = Subject.new(Path(name) / "deployment", database.new_database(), audited=audited)
            cluster = Cluster(subject, network)

            async def harm_and_prove() -> None:
                await harm_again_and_again(ledger, cluster, source, rounds=rounds, clients=clients)
                await prove(ledger, subject)

            asyncio.run(harm_and_prove())
        finally:
            database.remove()
    done = ", ".join(f"{ledger.counts[harm]} {harm}" for harm in HARMS)
    return tell(ledger, f"two machines, {clients} clients each, seed {seed}: {done}")


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    parser.add_argument("--no-audit", dest="audited", action="store_false", help="record no audit trail")
    options = parser.parse_args()
    reason = why_not_here()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if options.seed is None else options.seed
    return run(rounds=options.rounds, clients=options.clients, seed=seed, audited=options.audited)


if __name__ == "__main__":
    sys.exit(main())
