"""A real PostgreSQL for the tests: started when the first test asks for one, thrown away at the end."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import asyncpg
import pytest

from bespeak.state.store.postgres_connection import SCHEMA
from bespeak.state.store.settings import open_store

if TYPE_CHECKING:
    import pwd

_FOLDERS: Final = ("/usr/lib/postgresql", "/usr/pgsql", "/usr/local/pgsql", "/opt/homebrew/opt")
_ACCOUNTS: Final = ("postgres", "nobody")  # accounts to run PostgreSQL with, because it refuses to run as root
_PATIENCE: Final = 60.0
_INITDB: Final = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
# Runs the server until it is told how to stop it. If the tests die first, in whatever way, both server and data go.
_KEEPER: Final = """
folder=$1; shift
"$@" </dev/null &
read how && kill -$how $! || { kill -QUIT $!; rm -rf "$folder"; }
wait
"""
# Nothing here must outlive the machine, and without waiting for the disk tests are several times faster.
_FAST: Final = (
    "listen_addresses=127.0.0.1",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=32MB",
    "autovacuum=off",
)
# Changes with every change of a table, an index or the version, and with nothing else.
_TABLES: Final = f"""
SELECT concat_ws(' ', (SELECT string_agg(version::text, ' ') FROM {SCHEMA}.version), count(*), sum(xmin::text::bigint))
FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace)
"""
_DELETE_ROWS: Final = f"""
SET session_replication_role = replica;
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}' AND tablename <> 'version' LOOP
    EXECUTE format('DELETE FROM {SCHEMA}.%I', name);
  END LOOP;
  PERFORM setval(format('{SCHEMA}.%I', sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = '{SCHEMA}' AND last_value IS NOT NULL;
END $$
"""


class EmptyStore(NamedTuple):
    """A database with the tables of a store, without rows."""

    dsn: str
    tables: str
    """What the tables are, as `_TABLES` says."""


def postgres_programs() -> Path | None:
    """Return the folder with initdb and postgres, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    for folder in _FOLDERS:
        folders += sorted(Path(folder).glob("*/bin"), reverse=True)
    return next((at for at in folders if (at / "initdb").is_file() and (at / "postgres").is_file()), None)


def why_not() -> str | None:
    """Return the reason why PostgreSQL cannot be started here, or None."""
    if postgres_programs() is None:
        return "PostgreSQL is not installed: neither on the path nor in /usr/lib/postgresql is there an initdb"
    if sys.platform == "win32":
        return "PostgreSQL is started on Unix only"
    if os.geteuid() == 0 and _account() is None:
        return f"PostgreSQL does not run as root, and there is no account {' or '.join(_ACCOUNTS)} to run it as"
    return None


class PostgresServer:
    """A server on a free port of the loopback address, its data in a folder of its own."""

    def __init__(self, *settings: str) -> None:
        programs = postgres_programs()
        assert programs is not None
        self._programs = programs
        self._settings = settings
        self.folder = _new_folder()
        self._rights = _rights()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.empty_databases: list[str] = []
        self.empty_stores: list[EmptyStore] = []
        self.port = _free_port()
        try:
            # As the account that runs it: `cp` keeps neither owner nor times, and clones files where the disk can.
            copy = ["cp", "-R", str(_empty_cluster()), str(self.folder / "data")]
            subprocess.run(copy, cwd=self.folder, check=True, **self._rights)
            self.start()
        except BaseException:
            self.remove()
            raise

    @property
    def pid(self) -> int:
        """Process id of the first process, the parent of the others."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split("\n")[0])

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server on its existing data; it accepts connections on return."""
        settings = [
            word
            for setting in (*_FAST, f"unix_socket_directories={self.folder}", *self._settings)
            for word in ("-c", setting)
        ]
        command = [self._programs / "postgres", "-D", self.folder / "data", "-p", str(self.port), *settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "keeper", self.folder, *command],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                **self._rights,
            )
        end = time.monotonic() + _PATIENCE
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.01)

    def trust(self, network: str) -> None:
        """Let users in from another network."""
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"{rules.read_text()}host all all {network} trust\n")
        asyncio.run(self._execute("SELECT pg_reload_conf()"))

    def stop(self, how: str = "QUIT") -> None:
        """Stop the server: QUIT at once, as in a crash; INT gracefully."""
        if self._process is not None:
            self._process.communicate(f"{how}\n".encode(), _PATIENCE)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_database(self) -> str:
        """Create an empty database and return its address; not inside an event loop."""
        return asyncio.run(self.create_database())

    async def create_database(self, name: str | None = None) -> str:
        """Create an empty database inside an event loop and return its address."""
        self._databases += 1
        name = name or f"test{self._databases}"
        await self._execute(f"CREATE DATABASE {name}")
        return self.dsn(name)

    async def clear_database(self, dsn: str) -> None:
        """Empty a database for the next test, which is several times faster than creating another."""
        async with self._connected(dsn) as connection:
            await connection.execute(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        self.empty_databases.append(dsn)

    async def create_store(self, dsn: str) -> EmptyStore:
        """Make the tables of a store in an empty database."""
        store = open_store(dsn)
        await store.start()
        await store.close()
        async with self._connected(dsn) as connection:
            return EmptyStore(dsn, await connection.fetchval(_TABLES))

    async def clear_store(self, store: EmptyStore) -> None:
        """Delete the rows for the next test, which is several times faster than making the tables again."""
        async with self._connected(store.dsn) as connection:
            is_unchanged = await connection.fetchval(_TABLES) == store.tables
            if is_unchanged:
                await connection.execute(_DELETE_ROWS)
        if is_unchanged:
            self.empty_stores.append(store)
        else:
            await self.clear_database(store.dsn)

    @asynccontextmanager
    async def _connected(self, dsn: str) -> AsyncIterator[asyncpg.Connection]:
        """Connect to a database after a test: its connections have ended then, and so have its settings."""
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid(); "
                f"ALTER DATABASE {dsn.rpartition('/')[2]} RESET ALL"
            )
            yield connection
        finally:
            await connection.close()

    async def _execute(self, sql: str) -> None:
        connection = await asyncpg.connect(self.dsn())
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    def _ready(self) -> bool:
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"


@contextmanager
def running_postgres(*settings: str) -> Iterator[PostgresServer]:
    """Start a server for a test that stops it; skip the test if that is not possible."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    server = PostgresServer(*settings)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start the server that all tests of a process share."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the address of an empty database for one test."""
    dsn = postgres_server.empty_databases.pop() if postgres_server.empty_databases else postgres_server.new_database()
    yield dsn
    asyncio.run(postgres_server.clear_database(dsn))


@pytest.fixture
def postgres_store(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the address of a store without rows for one test."""
    server = postgres_server
    if server.empty_stores:
        store = server.empty_stores.pop()
    else:
        dsn = server.empty_databases.pop() if server.empty_databases else server.new_database()
        store = asyncio.run(server.create_store(dsn))
    yield store.dsn
    asyncio.run(server.clear_store(store))


@cache
def _empty_cluster() -> Path:
    """Create a data folder, once for all servers of this process: each takes a copy, which is many times faster."""
    programs = postgres_programs()
    assert programs is not None
    folder = _new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [programs / "initdb", "-D", folder / "data", *_INITDB]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **_rights())
    if made.returncode:
        raise RuntimeError(f"initdb failed: {made.stderr}")
    return folder / "data"


def _new_folder() -> Path:
    # Not pytest's own folder: that one is closed to other accounts, and paths of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="bespeak-pg-"))
    rights = _rights()
    if rights:
        os.chown(folder, rights["user"], rights["group"])
    return folder


def _rights() -> dict[str, Any]:
    """Return the options by which a process runs as another account, if this one is root."""
    account = _account() if os.geteuid() == 0 else None
    return {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _account() -> pwd.struct_passwd | None:
    import pwd  # not on Windows

    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
