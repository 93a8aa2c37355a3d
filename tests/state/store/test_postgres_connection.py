"""Addresses of databases, what their faults are called, and the pauses between attempts."""

from __future__ import annotations

import asyncio
import logging
import socket

import asyncpg
import pytest
from tests.cases import rows
from tests.postgres import PostgresServer

from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.state.store.postgres_connection import Address, Availability, is_collision, is_outage


@rows(
    "dsn, name",
    ("postgresql://u:s3cret@db.example:6000/shop", "The PostgreSQL database shop at db.example:6000"),
    ("postgres://db.example", "The PostgreSQL at db.example"),
    ("postgresql:///shop", "The PostgreSQL database shop at localhost"),
    ("postgresql:///shop?host=/run/postgresql", "The PostgreSQL database shop at localhost"),
    ("postgresql://u:s3%40cret@[::1]/shop?sslmode=require", "The PostgreSQL database shop at [::1]"),
    ("postgresql://u:s3cret@one:1,two:2/shop", "The PostgreSQL database shop at one:1,two:2"),
    ("postgresql://u:s3cret@1234@one/shop", "The PostgreSQL database shop at one"),
)
def test_a_database_is_named_without_user_and_password(dsn: str, name: str) -> None:
    assert Address(dsn, "full").name == name


@rows(
    "dsn",
    "postgresql://u:x@db:s3cret/x",
    "postgresql://u:s3cret/9@db/x",
    "postgresql://u:1/s3cret@db/x",
    "postgresql://u:1?s3cret@db/x",
    "postgresql://u:1#s3cret@db/x",
    "postgresql://u:x@d b;s3cret/x",
    "postgresql://u:s3cret@[::1/x",
)
def test_invalid_address_is_refused_without_quoting_it(dsn: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        Address(dsn, "full")
    assert "s3cret" not in str(caught.value)


@rows(
    "error, outage, collision",
    (ConnectionRefusedError(), True, False),
    (TimeoutError(), True, False),
    (asyncpg.InterfaceError("connection is closed"), True, False),
    (asyncpg.ConnectionDoesNotExistError(), True, False),
    (asyncpg.AdminShutdownError(), True, False),
    (asyncpg.CannotConnectNowError(), True, False),
    (asyncpg.DiskFullError(), True, False),
    (asyncpg.TooManyConnectionsError(), True, False),
    (asyncpg.ReadOnlySQLTransactionError(), True, False),
    (asyncpg.IdleInTransactionSessionTimeoutError(), True, False),
    (asyncpg.LockNotAvailableError(), False, False),
    (asyncpg.DeadlockDetectedError(), False, True),
    (asyncpg.SerializationError(), False, True),
    (asyncpg.UniqueViolationError(), False, False),
    (asyncpg.DataError(), False, False),
    (asyncpg.exceptions._base.DataError("invalid input for query argument"), False, False),
    (KeyError("x"), False, False),
)
def test_errors_of_the_server_are_distinguished_from_those_of_a_statement(
    error: Exception, outage: bool, collision: bool
) -> None:
    assert (is_outage(error), is_collision(error)) == (outage, collision)


@rows(
    "error, words",
    (asyncpg.InvalidPasswordError("password authentication failed"), "refused the login"),
    (asyncpg.InvalidCatalogNameError("no database"), "does not exist"),
    (asyncpg.InsufficientPrivilegeError("denied"), "Grant the user"),
    (asyncpg.TooManyConnectionsError("too many"), "max_connections"),
    (TimeoutError(), "does not answer in time"),
    (asyncpg.LockNotAvailableError(), "kept a row locked for 4 s"),
    (ConnectionRefusedError(111, "Connection refused"), r"cannot be reached \(Connection refused\)"),
    (asyncpg.DiskFullError("no space left"), "cannot be used: no space left"),
)
def test_each_fault_says_what_to_do(error: Exception, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        raise ConfigError(Address("postgresql://u:s3cret@db/shop", "full").explain(error))


@pytest.mark.anyio
async def test_each_connection_ends_if_its_peer_falls_silent(postgres_dsn: str) -> None:
    connection = await Address(postgres_dsn, "full").open()
    names = ("idle_in_transaction_session_timeout", "lock_timeout", "tcp_user_timeout", "tcp_keepalives_idle")
    idle, lock, user, keepalive = [
        (await connection.fetch("SELECT setting::int FROM pg_settings WHERE name = $1", name))[0][0] for name in names
    ]
    assert 0 < idle < lock < 5000  # whoever waits for the rows of a lost process gets them
    assert 0 < user <= 10_000
    assert 0 < keepalive <= 10
    end = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]
    assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    await connection.close()


@pytest.mark.anyio
async def test_retries_wait_for_a_growing_pause(
    postgres_server: PostgresServer,
) -> None:
    now = 0.0
    address = Address(postgres_server.dsn("later"), "full", clock=lambda: now)
    pauses = []
    for _ in range(7):
        with pytest.raises(StoreUnavailableError, match="does not exist"):
            await address.connect()
        pauses.append(address.wait)
        now += address.wait
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])
    with pytest.raises(StoreUnavailableError):
        await address.connect()
    created = await postgres_server.create_database("later")
    with pytest.raises(StoreUnavailableError, match="does not exist"):
        await address.connect()
    assert address.wait == pytest.approx(2.0)
    now += 2.0
    connection = await address.connect()
    assert (address.wait, created) == (0.0, postgres_server.dsn("later"))
    await connection.close()


@pytest.mark.anyio
async def test_concurrent_failed_attempts_count_once(postgres_server: PostgresServer) -> None:
    address = Address(postgres_server.dsn("missing"), "full", clock=lambda: 0.0)
    failed = await asyncio.gather(*(address.connect() for _ in range(5)), return_exceptions=True)
    assert {type(error) for error in failed} == {StoreUnavailableError}
    assert address.wait == pytest.approx(0.1)


@pytest.mark.anyio
async def test_successful_connection_resets_the_pause(postgres_dsn: str) -> None:
    connection = await Address(postgres_dsn, "process").connect(enable_seqscan="off")
    rows = await connection.fetch("SELECT current_setting('enable_seqscan'), current_setting('synchronous_commit')")
    assert tuple(rows[0]) == ("off", "off")
    await connection.close()


def test_the_log_tells_once_that_the_database_fails_and_works_again(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    availability = Availability("The database", clock=lambda: now)
    for second in range(20):
        now = second / 4
        availability.note_failure("does not answer" if second % 3 else "is closed")
        availability.note_success()  # of a statement that another connection had sent before
    for second in range(20):
        now = 5 + second / 4
        availability.note_success()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "is closed",
        "The database works again.",
    ]
    availability.note_failure("is gone")
    availability.note_locked("a row is locked")
    availability.note_locked("a row is locked")
    assert [record.levelname for record in caplog.records][-2:] == ["ERROR", "WARNING"]
