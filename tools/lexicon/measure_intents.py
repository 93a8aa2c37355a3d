"""Measure pass 6 on operations of AWS and Google: `python tools/lexicon/measure_intents.py WHEEL ...`.

The wheels are those of botocore and google-api-python-client on PyPI. Each operation is paired with its own verb and
with the verb of another operation of its service that does something else. Sentences that do not say what an
operation does count too.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from bespeak.text.language.consistency import judge
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.names import words
from bespeak.text.language.operation_class import operation_classes

METHODS: Final = {"get": "fetch", "delete": "remove", "put": "replace", "patch": "modify"}
SERVICES: Final = (
    re.compile(r"botocore/data/([^/]+)/([^/]+)/service-2\.json\.gz"),
    re.compile(r"googleapiclient/discovery_cache/documents/(\w+)\.\w+\.json"),
)
FIRST: Final = re.compile(r"(.+?[.!?])(?:\s|$)")
NO_DEED: Final = re.compile(r"(?i)deprecated|no longer|documentation|only valid for|subject to chang|not supported")
MANNER: Final = "batch"  # It says how many, and is no verb.


def operations(path: str) -> dict[str, list[tuple[str, str]]]:
    """Return the verb and the first sentence of each operation by service, from the newest version of each."""
    found: dict[str, list[tuple[str, str]]] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):  # a later version replaces an earlier one
            if match := next(filter(None, (service.fullmatch(name) for service in SERVICES)), None):
                data = wheel.read(name)
                described = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
                pairs = [pair for named, text in _described(described) if (pair := _pair(named, text))]
                found[match[1]] = pairs or found.get(match[1], [])
    return found


def _described(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each operation: AWS lists operations, Google methods of nested resources."""
    for name, operation in node.get("operations", {}).items():
        yield name, operation.get("documentation", "")
    for name, method in node.get("methods", {}).items():
        yield name, method.get("description", "")
    for resource in node.get("resources", {}).values():
        yield from _described(resource)


def _pair(name: str, described: str) -> tuple[str, str] | None:
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", described)).split())
    sentence = match[1] if (match := FIRST.match(text)) else text
    verb = words(name)[0]
    known = verb in meanings().hand and verb != MANNER
    return (verb, sentence) if known and sentence and not NO_DEED.search(sentence) else None


def main() -> None:
    """Print the balanced accuracy, and the share of honest sentences that are called a violation, for each wheel."""
    for path in sys.argv[1:]:
        _measure(path)


def _measure(path: str) -> None:
    draw = random.Random(5)
    verdicts: dict[bool, list[str]] = defaultdict(list)
    for _, pairs in sorted(operations(path).items()):
        kinds = {verb: classes.main for verb, _ in pairs if (classes := operation_classes(verb))}
        for verb, sentence in pairs:
            verdicts[True].append(judge(METHODS.get(verb, verb).upper(), sentence).verdict)
            if others := [other for other, _ in pairs if kinds[other] != kinds[verb]]:
                other = draw.choice(others)
                verdicts[False].append(judge(METHODS.get(other, other).upper(), sentence).verdict)
    flagged = {fits: sum(one in {"violation", "warning"} for one in told) for fits, told in verdicts.items()}
    honest, swapped = verdicts[True], verdicts[False]
    accuracy = (1 - flagged[True] / len(honest) + flagged[False] / len(swapped)) / 2
    hard = honest.count("violation") / len(honest)
    sys.stdout.write(f"{len(honest)} operations: balanced accuracy {accuracy:.4f}, honest violations {hard:.4f}\n")


if __name__ == "__main__":
    main()
