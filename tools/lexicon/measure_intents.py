"""Measure pass 6 on operations of AWS: `python tools/lexicon/measure_intents.py botocore-*.whl`, a wheel of PyPI.

Each operation is paired with its own verb and with the verb of another operation of its service that does something
else. Sentences that do not say what an operation does count too.
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
from typing import Any, Final

from bespeak.text.language.consistency import judge
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.operation_class import operation_classes

METHODS: Final = {"get": "fetch", "delete": "remove", "put": "replace", "patch": "modify"}
SERVICE: Final = re.compile(r"botocore/data/([^/]+)/([^/]+)/service-2\.json\.gz")
FIRST: Final = re.compile(r"(.+?[.!?])(?:\s|$)")
NO_DEED: Final = re.compile(r"(?i)deprecated|no longer|documentation|only valid for|subject to chang|not supported")


def operations(path: str) -> dict[str, list[tuple[str, str]]]:
    """Return the verb and the first sentence of each operation by service, from the newest version of each."""
    found: dict[str, list[tuple[str, str]]] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):  # a later version replaces an earlier one
            if match := SERVICE.fullmatch(name):
                described = json.loads(gzip.decompress(wheel.read(name)))["operations"]
                found[match[1]] = [pair for item in described.items() if (pair := _pair(*item))]
    return found


def _pair(name: str, operation: dict[str, Any]) -> tuple[str, str] | None:
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", operation.get("documentation", ""))).split())
    sentence = match[1] if (match := FIRST.match(text)) else text
    verb = re.findall("[A-Z][a-z]*", name)[0].lower()
    return (verb, sentence) if verb in meanings().hand and sentence and not NO_DEED.search(sentence) else None


def main() -> None:
    """Print the balanced accuracy, and the share of honest sentences that are called a violation."""
    draw = random.Random(5)
    verdicts: dict[bool, list[str]] = defaultdict(list)
    for _, pairs in sorted(operations(sys.argv[1]).items()):
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
