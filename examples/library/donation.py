"""A donation arrives at an archive: it is imported, searched, examined, corrected, sorted and reported.

`python examples/library/donation.py` starts the archive with a store of its own, and lets the agents of a curator and
of a reader use it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bespeak import SyncServiceClient, connect_sync

FOLDER = Path(__file__).resolve().parent
CURATOR, READER = "c0" * 32, "4e" * 32  # Agent-IDs
SHELVES = [
    {"label": "Sea", "keywords": ["sea", "ships", "fishing", "whaling", "shipwreck", "sailing", "voyage"]},
    {"label": "Travel", "keywords": ["travel"]},
    {"label": "Nature", "keywords": ["nature", "animals", "plants"]},
    {"label": "Fiction", "keywords": ["novel", "gothic", "ghost", "science fiction"]},
]


def main() -> None:
    """Start the archive, and tell what its agents do."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-library-")))
        uri = stack.enter_context(serve(folder / "archive.db"))
        curator = stack.enter_context(connect_sync(uri, agent_id=CURATOR))
        reader = stack.enter_context(connect_sync(uri, agent_id=READER))
        receive(curator)
        search(curator, reader)
        examine(curator)
        sort(curator)
        join(curator)
        report(curator)


def receive(curator: SyncServiceClient) -> None:
    """Import the list of a donation. What is not in order is rejected, and the rest is not held up by it."""
    say("A donation arrives, with a list in CSV.")
    text = (FOLDER / "donation.csv").read_text("utf-8")
    columns = {"pages": "integer", "published": "integer"}
    done = curator.call("IMPORT", "/", source=text, format="csv", target="donation", key="shelfmark", columns=columns)
    say(f"  {done['records']} rows: {done['added']} imported, {done['rejected_count']} rejected")
    for row in done["rejected"]:
        say(f"  line {row['line']}: {row['reason']}")


def search(curator: SyncServiceClient, reader: SyncServiceClient) -> None:
    """Search by words and by columns. What the curator has imported does not exist for the reader."""
    say("\nWho looks for what?")
    found = curator.call("SEARCH", "/", query="ships", sort="published")
    say("  ships, for the curator: " + "; ".join(one["item"]["title"] for one in found["results"]))
    found = reader.call("SEARCH", "/", query="ships", sort="published")
    say("  ships, for a reader: " + "; ".join(one["item"]["title"] for one in found["results"]))
    old = curator.call("SEARCH", "/", scope="donation", query={"published": {"max": 1750}}, sort="published")
    for one in old["results"]:
        say(f"  before 1750: {one['item']['published']} {one['item']['title']}")


def examine(curator: SyncServiceClient) -> None:
    """Find a slip of the pen by statistics, and correct it. The version before stays readable."""
    say("\nIs something wrong with the list?")
    found = curator.call("ANALYZE", "/", target="donation", analysis_type="anomaly", columns=["pages"], explain=True)
    for one in found["findings"]:
        say(f"  {one['explanation']} Confidence {one['confidence']:.2f}.")
    book = curator.call("SEARCH", "/", scope="donation", query={"pages": {"min": 2000}})["results"][0]["item"]
    say(f"  {book['title']} has {book['pages']} pages?")
    right = [{"shelfmark": book["shelfmark"], "pages": 274}]
    curator.call("IMPORT", "/", source=right, target="donation", key="shelfmark", conflict_policy="merge")
    now = curator.call("FETCH", "/", resource_id=f"donation/{book['shelfmark']}")
    before = curator.call("FETCH", "/", resource_id=now["resource_id"], version=1)
    say(f"  version {now['version']}: {now['content']['pages']}; version 1: {before['content']['pages']}")


def sort(curator: SyncServiceClient) -> None:
    """Put books on shelves by their subjects, say what binding costs, and guess how long they stay away."""
    say("\nWhere do the books belong?")
    for key in ("A-001", "A-014", "A-028"):
        book = curator.call("FETCH", "/", resource_id=f"donation/{key}")["content"]
        [found] = curator.call("CLASSIFY", "/", items=[book["subject"]], taxonomy=SHELVES)["classified"]
        say(f"  {book['title']}: {found['labels'][0]['label']}")
    [found] = curator.call("CLASSIFY", "/", items=["A guest book"], taxonomy=SHELVES)["classified"]
    say(f"  A guest book: {found['labels'] or 'nowhere'}")
    cost = curator.call("CALCULATE", "/", expression={"formula": "binding"}, inputs={"pages": 635}, currency="EUR")
    say(f"  binding Moby-Dick: {cost['result']} EUR")
    days = curator.call("PREDICT", "/", input={"pages": 635, "language": "en"}, model_id="loan-days")
    say(f"  a reader keeps it for {days['predictions'][0]['value']} days, the model guesses")


def join(curator: SyncServiceClient) -> None:
    """Join the donation with the holdings, and keep what belongs together."""
    say("\nThe donation becomes a part of the archive.")
    merged = curator.call("MERGE", "/", sources=["holdings", "donation"], key="shelfmark", into="catalogue")
    say(f"  {merged['count']} books, {merged['conflict_count']} conflicts")
    typee, omoo = "donation/A-002", "donation/A-003"
    curator.call("LINK", "/", source=omoo, target=typee, relationship="continues")
    [link] = curator.call("FETCH", "/", resource_id=omoo, follow="continues")["links"]
    say(f"  Omoo {link['relationship']} {link['content']['title']}")


def report(curator: SyncServiceClient) -> None:
    """Make the report of the archive, and read it."""
    say("\nThe archive reports.")
    wanted = {"report_type": "holdings", "scope": "all", "recipient": CURATOR, "format": "markdown"}
    made = curator.call("REPORT", "/", **wanted)
    text = curator.call("FETCH", "/documents/{document_id}", document_id=made["document_id"])["text"]
    for line in text[text.index("- Books") :].splitlines():
        say(f"  {line}".rstrip())


@contextmanager
def serve(store: Path) -> Iterator[str]:
    """Serve the archive on a free port; yield its address."""
    options = ["--agtp", "127.0.0.1:0", "--store", str(store), "--log", "error"]
    command = [sys.executable, "-m", "bespeak", "serve", str(FOLDER), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            announced = process.stdout.readline().split()  # AGTP  agtp://127.0.0.1:PORT  ...
            yield announced[1] if announced else sys.exit("the archive does not start; it has told why")
        finally:
            process.terminate()


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
