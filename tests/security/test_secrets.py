"""What must stay secret is in no log, manifest, answer, record or output of a command."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cases import rows
from tests.postgres import running_postgres
from tests.process import Served, bespeak
from tests.security.guarded import Answer, Guarded, ask, bearer
from tests.security.test_tokens import forgeries
from tests.state.identity.issuer import OTHER

pytestmark = pytest.mark.process
PATIENCE = 60.0


class Secrets:
    """Secrets that were sent and stored, and the places where they must not appear."""

    def __init__(self) -> None:
        self.all: dict[str, str] = {}
        self.seen: dict[str, str] = {}

    def add(self, name: str, value: str) -> str:
        self.all[name] = value
        return value

    def see(self, where: str, text: str | bytes) -> None:
        self.seen[where] = text.decode("utf-8", "replace") if isinstance(text, bytes) else text

    def found(self) -> Iterator[str]:
        for where, text in self.seen.items():
            yield from (f"{name} in {where}" for name, value in self.all.items() if value in text)


@pytest.mark.requirement("CORE-10.1-13", "CORE-12-8")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_secret_shows_up_anywhere(store: str, tmp_path: Path) -> None:
    kept = Secrets()
    guarded = Guarded(tmp_path / "seats", "token", "signed", more="[agents]\nrequire_known = false\n")
    if store == "sqlite":
        _use(guarded, kept)
    else:
        with running_postgres() as database:
            password = kept.add("password of the database", f"pw-{secrets.token_hex(8)}")
            guarded.store = database.new_database().replace("postgres@", f"postgres:{password}@")

            def outage(served: Served) -> None:
                database.stop()
                answers = _until(served, kept, 503)
                kept.see("the answer of an outage", answers.body)
                database.start()
                _until(served, kept, 200)

            _use(guarded, kept, outage)
    assert len(kept.all) > 10
    assert len(kept.seen) > 10
    assert sum(map(len, kept.seen.values())) > 10_000
    assert list(kept.found()) == []


def _until(served: Served, kept: Secrets, status: int) -> Answer:
    end = time.monotonic() + PATIENCE
    headers = bearer(kept.all["a good token"])
    while (answer := ask(served, headers)).status != status and time.monotonic() < end:
        pass
    assert answer.status == status
    return answer


def _use(guarded: Guarded, kept: Secrets, outage: Callable[[Served], None] | None = None) -> None:
    """Everything that has to do with secrets, done right and wrong."""
    agent = guarded.new_agent("desk")
    for name in ("signing.pem", "desk.agent.pem", "server.key.pem"):
        lines = (guarded.folder / name).read_text().splitlines()
        kept.add(f"private key {name}", next(line for line in lines if not line.startswith("-----")))
    with ThreadPoolExecutor(1) as beside, guarded.serving("--log", "info") as served:
        log = beside.submit(served.process.stderr.read)  # a pipe that nobody reads would stop the server
        _ask_with_tokens(guarded, served, kept)
        headers = agent.signed()
        kept.add("a signature", headers["agent-signature"].rpartition(".")[2])
        kept.add("a nonce", headers["agent-signature"].partition(".")[0])
        for name in ("first", "second"):
            kept.see(f"the {name} answer to a signature", ask(served, headers).body)
        wrong = agent.signed(target="/other")
        kept.add("a wrong signature", wrong["agent-signature"].rpartition(".")[2])
        kept.see("the answer to a wrong signature", ask(served, wrong).body)
        _suspend(guarded, served, kept)
        for method, target in (("DISCOVER", "/"), ("DISCOVER", "/methods"), ("DISCOVER", "/agents")):
            answer = ask(served, bearer(kept.all["a good token"]), method=method, target=target)
            kept.see(f"{method} {target}", answer.body + repr(answer.headers).encode())
        if outage is not None:
            outage(served)
        assert served.stop() == 0
        kept.see("the log", log.result(PATIENCE))
    assert "401" in kept.seen["the log"]
    _run_commands(guarded, agent.agent_id, kept)


def _ask_with_tokens(guarded: Guarded, served: Served, kept: Secrets) -> None:
    good = kept.add("a good token", guarded.token())
    kept.add("the signature of a good token", good.rpartition(".")[2])
    kept.see("a good answer", ask(served, bearer(good, Idempotency_Key="k-1")).body)
    wrong = {**forgeries(guarded), "expired": guarded.token(exp=1), "for another": guarded.token(aud="other.example")}
    for name, token in wrong.items():
        if len(token) > 20:  # shorter ones are parts of many words
            kept.add(f"a token {name}", token[-60:])
        kept.see(f"the answer to a token {name}", ask(served, bearer(token)).body)
    kept.see("the answer to two ids", ask(served, bearer(good, Agent_ID=OTHER)).body)
    password = kept.add("a password", f"user:{secrets.token_hex(8)}")
    kept.see("the answer to a password", ask(served, {"Authorization": f"Basic {password}"}).body)
    kept.see("the answer to a token in the wrong place", ask(served, {"Authority-Scope": good}).body)
    kept.see("the answer to no request", ask(served, bearer(good), method="BOOK", target="/nowhere").body)


def _suspend(guarded: Guarded, served: Served, kept: Secrets) -> None:
    session = secrets.token_hex(16)
    assert ask(served, bearer(kept.all["a good token"], Session_ID=session)).status == 200
    body = json.dumps({"session_id": session}).encode()
    suspended = ask(served, bearer(guarded.token()), body, method="SUSPEND", target="/")
    kept.add("the nonce of a suspended session", suspended.json["result"]["resumption_nonce"])


def _run_commands(guarded: Guarded, agent_id: str, kept: Secrets) -> None:
    place = ("--store", guarded.store)
    folder = str(guarded.folder)
    for arguments in (
        ("store", "check", folder, *place),
        ("store", "check", folder, *place, "--json"),
        ("store", "migrate", folder, *place),
        ("store", "export", folder, *place),
        ("audit", "verify", folder, *place),
        ("audit", "show", folder, *place),
        ("audit", "export", folder, *place),
        ("agents", "list", folder, *place),
        ("agents", "show", agent_id, folder, *place),
        ("keys", "show", str(guarded.folder / "signing.pem")),
        ("lint", folder),
    ):
        done = bespeak(*arguments)
        assert "internal error" not in done.stderr, (arguments, done.stderr)
        assert done.stdout, (arguments, done.stderr)
        kept.see(" ".join(arguments[:2]), done.stdout + done.stderr)


@rows(
    "place",
    "postgresql://desk:{}@127.0.0.1:1/seats",
    "postgresql://desk:{}@127.0.0.1:port/seats",
    "postgresql://desk:{}@[/seats",
    "postgresql://127.0.0.1:1/seats?user=desk&password={}",
    "postgresql://desk:{}@127.0.0.1:1/seats?sslmode=nonsense",
)
@pytest.mark.parametrize("command", ["serve", "store check", "store export", "agents list", "audit verify"])
def test_the_password_of_an_unusable_database_is_not_disclosed(place: str, command: str, tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, "token")
    password = f"pw-{secrets.token_hex(8)}"
    options = ("--agtp", "127.0.0.1:0", "--log", "info") if command == "serve" else ()
    done = bespeak(*command.split(), str(guarded.folder), "--store", place.format(password), *options)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert password not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
