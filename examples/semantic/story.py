"""Two domains with different words find each other, and one word with two meanings is told apart.

`python examples/semantic/story.py` registers the ontologies of both domains and the alignment between them, starts the
clinic, and lets an agent of a radiology department use it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bespeak import Reply, SyncServiceClient, connect_sync

FOLDER = Path(__file__).resolve().parent
AGENT = "0a3f" * 16
REPORT = "CT of the chest. No nodules. No effusion. No sign of relapse."
ONTOLOGIES = ("radiology.ttl", "clinical.ttl", "computer-science.ttl", "law.ttl", "radiology-clinical.json")


def main() -> None:
    """Register what the domains mean, start the clinic, and tell both stories."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-semantic-")))
        store = folder / "clinic.db"
        for name in ONTOLOGIES:
            run("semantic", "register", str(FOLDER / "ontologies" / name), "--store", str(store), "--by", "story")
        uri = stack.enter_context(serve(FOLDER, store))
        clinic = stack.enter_context(connect_sync(uri, agent_id=AGENT))
        summarize_report(clinic)
        explain_llm(clinic)


def summarize_report(clinic: SyncServiceClient) -> None:
    """Find, agree on and call the capability of the other domain that does what is wanted."""
    say("The radiology department looks for radiology-report-summary.")
    found = clinic.call("DISCOVER", "/", criteria="radiology-report-summary")["candidates"][0]
    name = found["semantic"]["capabilityRefs"][0].rpartition("#")[2]
    say(f"  The clinic offers {name} at {found['method']} {found['path']}, {found['match']}: {found['confidence']}.")
    profile = {
        "@context": ["https://ex.org/ctx", {"rad": "https://x.org/onto/rad#"}],
        "type": "ioa:SemanticProfile",
        "ontologyId": "https://x.org/onto/rad",
        "ontologyVersion": "1.0",
        "capabilityRefs": ["rad:report-summary"],
        "intentRef": "rad:summarize-report",
        "alignmentRef": found["semantic"]["alignmentRef"],
    }
    agreed = clinic.request("PROPOSE", "/", {"semantic_profile": profile}, task_id="t-1038")
    say(f"  Both agree on the profile of task t-1038: {agreed.output['semantic']['match']}.")
    done = clinic.request("SUMMARIZE", "/note", {"text": REPORT, "semantic": profile}, task_id="t-1038")
    say(f"  Summary: {done.output['summary']} The clinic understood {done.output['capability'].rpartition('#')[2]}.\n")


def explain_llm(clinic: SyncServiceClient) -> None:
    """Ask for the same abbreviation in two domains, and for a sense of the wrong one."""
    say("What does LLM mean?")
    for domain, capability, intent, sense in (
        ("cs:ComputerScience", "cs:TechTranslation", "cs:TranslateTechDoc", "cs:LargeLanguageModel"),
        ("law:Law", "law:LegalTranslation", "law:TranslateLegalDoc", "law:MasterOfLaws"),
        ("cs:ComputerScience", "cs:TechTranslation", "cs:TranslateTechDoc", "law:MasterOfLaws"),
    ):
        reply = ask(clinic, {"domain": domain, "termBindings": [{"term": "LLM", "sense": sense}]}, capability, intent)
        if reply.ok:
            say(f"  In {domain}: {reply.output['meaning']}.")
        else:
            assert reply.error is not None
            validation = reply.error.members["validation"]
            say(f"  In {domain} with the sense {sense}: {validation['status']}, {validation['reason']}.")


def ask(clinic: SyncServiceClient, context: Mapping[str, Any], capability: str, intent: str) -> Reply:
    """Ask for the meaning of LLM with a profile as in Figure 5 of the draft."""
    profile = {
        "@context": [
            "https://ex.org/ctx",
            {"cs": "https://ex.org/onto/cs#", "law": "https://ex.org/onto/law#"},
        ],
        "type": "ioa:SemanticProfile",
        "ontologyId": "https://ex.org/onto/agent-core",
        "ontologyVersion": "1.0",
        "capabilityRefs": [capability],
        "intentRef": intent,
        "profileContext": context,
    }
    return clinic.request("TRANSLATE", "/abbreviation", {"term": "LLM", "semantic": profile})


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def run(*arguments: str) -> None:
    """Run a command of bespeak, and stop if it fails."""
    subprocess.run([sys.executable, "-m", "bespeak", *arguments], stdout=subprocess.DEVNULL, check=True)  # noqa: S603


@contextmanager
def serve(target: Path, store: Path) -> Iterator[str]:
    """Serve a target on a free port in a process of its own, and yield its address."""
    options = ["--agtp", "127.0.0.1:0", "--store", str(store)]
    server = subprocess.Popen(  # noqa: S603 - our own command and our own folder
        [sys.executable, "-m", "bespeak", "serve", str(target), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        announced = server.stdout.readline().split()  # AGTP  agtp://127.0.0.1:PORT  ...
        if not announced:
            sys.exit(f"{target} does not start; `bespeak serve {target}` tells why")
        yield announced[1]
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    main()
