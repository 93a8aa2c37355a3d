"""The cost of durable state: every request with an idempotency key and an audit record, compared with the same
server without.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import timeit
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from load import Load, Loader
from report import Goal, table

import contract
from process import ServerProcess, free_port, running

ROOT = Path(__file__).resolve().parent.parent
PER_CONNECTION = 2500
"""Different requests per connection and round: more than it can send, so that none is sent twice."""

_CONFIGURATION = """\
[server]
server_id = "rooms.acme.example"
operator = "Acme"
contact = "ops@acme.example"
app = "servers.bespeak_app:app"
{signing}

[store]
place = "{place}"
durability = "{durability}"

[audit]
enabled = {audit}
{sign}
"""


@dataclass(slots=True)
class Variant:
    """A configuration of the store, with its measurements."""

    name: str
    header: bytes
    connections: int
    store: str = "sqlite"
    audit: bool = True
    sign: str = ""
    durability: str = "full"
    rounds: list[Load] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    @property
    def rps(self) -> float:
        """Requests per second."""
        return median(load.rps for load in self.rounds)


def requests(header: bytes, connections: int, start: int) -> bytes:
    """Copy a request with a different header value in each copy."""
    line, _, rest = contract.agtp_request(contract.GOOD).partition(b"\r\n")
    numbers = range(start, start + connections * PER_CONNECTION)
    return b"".join(b"%b\r\n%b: %016d\r\n%b" % (line, header, number, rest) for number in numbers)


@contextlib.contextmanager
def serving(variant: Variant, postgres: str | None) -> Iterator[ServerProcess]:
    """Run the server of a variant on a new store."""
    with tempfile.TemporaryDirectory(prefix="bespeak-bench-") as name:
        folder = Path(name)
        signing = ""
        if variant.sign:
            from bespeak.state.identity.jws import generate_key, private_text

            (folder / "key.pem").write_text(private_text(generate_key()))
            signing = 'signing_key = "key.pem"'
        place = postgres if variant.store == "postgres" else variant.store if variant.store == "memory" else "state.db"
        (folder / "bespeak.toml").write_text(
            _CONFIGURATION.format(
                signing=signing,
                place=place,
                durability=variant.durability,
                audit="true" if variant.audit else "false",
                sign=f'sign = "{variant.sign}"' if variant.sign else "",
            )
        )
        port = free_port()
        with running(["-m", "bespeak", "serve", name, "--agtp", f"127.0.0.1:{port}"], port) as server:
            yield server


def measure(loader: Loader, *, rounds: int, seconds: float) -> bool:
    """Run all variants in turn, print the table and the goals; return True if every reply was a 200."""
    key, task = b"Idempotency-Key", b"Task-ID"
    variants = [
        Variant("without: 32 connections", task, 32, audit=False),
        Variant("SQLite, key and audit", key, 32, sign="checkpoints"),
        Variant("SQLite, each record signed", key, 32, sign="each"),
        Variant("SQLite, durability process", key, 32, sign="checkpoints", durability="process"),
    ]
    with contextlib.ExitStack() as stack:
        address = _postgres(stack)
        if address is not None:
            variants += [
                Variant("without: 128 connections", task, 128, audit=False),
                Variant("PostgreSQL, key and audit", key, 128, store="postgres", sign="checkpoints"),
                Variant("PostgreSQL, each record signed", key, 128, store="postgres", sign="each"),
            ]
        for variant in variants:
            with serving(variant, address) as server:
                _run(loader, variant, server, rounds, seconds)
    _report(variants)
    _token_verification()
    return not any(load.errors for variant in variants for load in variant.rounds)


def _run(loader: Loader, variant: Variant, server: ServerProcess, rounds: int, seconds: float) -> None:
    for number in range(rounds + 1):
        made = requests(variant.header, variant.connections, number * variant.connections * PER_CONNECTION)
        before = server.cpu_seconds()
        load = loader.run(server.port, made, seconds=seconds, connections=variant.connections)
        if number:  # the first round warms up
            variant.rounds.append(load)
            variant.cpu_us.append((server.cpu_seconds() - before) / load.requests * 1e6)


def _postgres(stack: contextlib.ExitStack) -> str | None:
    """Start a PostgreSQL that syncs to disk; if that is not possible, print the reason and return None."""
    sys.path.insert(0, str(ROOT))
    from tests.postgres import running_postgres, why_not

    reason = why_not()
    if reason is not None:
        print(f"  PostgreSQL is skipped: {reason}")
        return None
    server = stack.enter_context(running_postgres("listen_addresses=127.0.0.1", "max_connections=200"))
    return server.new_database()


def _report(variants: list[Variant]) -> None:
    rows = [["server", "requests/s", "p50 µs", "p99 µs", "CPU µs", "of without", "errors"]]
    bases = {variant.connections: variant for variant in variants if variant.name.startswith("without")}
    for variant in variants:
        base = bases[variant.connections]
        rows.append(
            [
                variant.name,
                f"{variant.rps:,.0f}",
                f"{median(load.p50_us for load in variant.rounds):,.0f}",
                f"{median(load.p99_us for load in variant.rounds):,.0f}",
                f"{median(variant.cpu_us):.1f}",
                f"{variant.rps / base.rps:.0%}",
                str(sum(load.errors for load in variant.rounds)),
            ]
        )
    print(table(rows))
    print()
    by_name = {variant.name: variant for variant in variants}
    sqlite, without = by_name["SQLite, key and audit"], by_name["without: 32 connections"]
    floor = max(4000.0, 0.4 * without.rps)
    print("  " + Goal("", at_least=floor, unit="/s").line("SQLite at 32 connections", sqlite.rps))
    postgres = by_name.get("PostgreSQL, key and audit")
    if postgres is not None:
        print("  " + Goal("", at_least=8000, unit="/s").line("PostgreSQL at 128 connections", postgres.rps))


def _token_verification() -> None:
    """Measure the verification of a token that is already in the cache."""
    from joserfc import jwt
    from joserfc.jwk import OKPKey

    from bespeak.protocol.exchange.refusal import Refused
    from bespeak.state.identity.bearer import BearerVerifier
    from bespeak.state.identity.jwks import FileKeys
    from bespeak.state.identity.settings import TokenSettings

    key = OKPKey.generate_key("Ed25519")
    with tempfile.TemporaryDirectory(prefix="bespeak-bench-") as name:
        file = Path(name) / "keys.json"
        file.write_bytes(key.as_pem(private=False))
        settings = TokenSettings(keys=file)
        verifier = BearerVerifier(settings, FileKeys(file), audience="rooms.acme.example")
        claims = {"agent_id": "a1" * 32, "scope": contract.SCOPE, "aud": "rooms.acme.example", "exp": 4_000_000_000}
        token = jwt.encode({"alg": "Ed25519"}, claims, key, algorithms=["Ed25519"])
        if isinstance(verifier.verify(token), Refused):
            raise TypeError("the token was not accepted")
        warm = min(timeit.repeat(lambda: verifier.verify(token), number=100_000, repeat=5)) / 100_000 * 1e6
    print("  " + Goal("", at_most=5.0, unit=" µs").line("a cached token", warm))
