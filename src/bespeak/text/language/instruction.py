"""Instructions: sentences that tell a model what to do, instead of describing an endpoint (AGIS 13).

A sentence is judged by all its words, not by a list of phrases alone. Each word and each pair of neighbours has a
weight, learnt from attacks and from honest descriptions (`lexicon/build_instructions.py`). Private files, addresses,
commands and names of tools and parameters count as words of their own, so that others of their kind are known too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from bespeak.text.language.data_file import read_data
from bespeak.text.language.injection import normal
from bespeak.text.language.instruction_phrases import NEEDLES, PHRASES, STEMS
from bespeak.text.language.late_pattern import LatePattern
from bespeak.text.language.sentence import is_english, words


class Instruction(NamedTuple):
    """The purpose of an instruction, its words, and where they begin in the text."""

    kind: str
    text: str
    start: int = 0


_END: Final = re.compile(r"(?<=[.!?。！？])\s+|(?<=>)\s+(?=[A-Z])|\s*\n\s*(?=[\n#*•-]|\d+[.)])|(?<=[。！？])")
_MOST: Final = 400
"""Sentences of a text that are judged."""
_LONGEST: Final = 1_500
"""Characters of one sentence that are judged together; the rest counts as another one."""
_LONGEST_REPEATED: Final = 300
"""Characters of a text whose judgement is remembered."""
_JOINED: Final = re.compile(r"[A-Za-z]+(?:[A-Z_.-]+[a-z0-9]+){3,}|[a-z0-9]+(?:[_-][a-z0-9]+){3,}")
"""Name that may be a whole sentence: content_from_reading_ssh_id_rsa."""
_LONGEST_NAME: Final = 100
_NAME_LIMIT: Final = 2.0
"""Sum of weights above which a name is an instruction: it has few words."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]")
_MARKUP: Final = re.compile(r"<!--|-->|</?[a-z][^<>]{0,300}>")

_TOKEN: Final = LatePattern(
    r"(?P<ADDRESS>[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]+|\b(?:https?|ftp|wss?)://\S+|\b[\w-]{1,63}\.(?:example|com|net|org|io|dev)\b\S*"
    r"|\+\d[\d ]{6,}|\b(?:bc1|0x)\w{8,}|\b[a-z]{2}\d{2}[ \d]{8,})"
    r"|(?P<FILE>(?:~|/etc|/home|/var|c:\\)[/\\][\w./\\-]*|(?<!\w)\.(?:env|ssh|aws|kube|npmrc|netrc|pem)\b"
    r"|\bid[_ ](?:rsa|ed25519)\S*|\b\w{1,64}\.(?:json|ya?ml|pem|env|db|sh)\b)"
    r"|(?P<COMMAND>\b(?:curl|wget|bash|sh|cat|rm|chmod|powershell|eval|os\.system)\b)"
    r"|(?P<NAME>\b[a-z]{1,64}(?:_[a-z0-9]{1,64}){1,12}\b)"
    r"|(?P<QUOTED>[`'\"]\w+[`'\"])"
    r"|(?P<NUMBER>\d+)"
    r"|(?P<word>[^\W\d_]+(?:'[a-z]+)?)"
)
_ENDINGS: Final = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_SHORTEST_STEM: Final = 3
_LIMIT: Final = "*"
"""Name of the sum of weights above which a sentence is an instruction, among the weights."""
_UNLIKELY: Final = 0.5
"""Sum of weights up to which an English sentence has none of the phrases."""
_ANYTHING: Final = "tells a model what to do"
_PURPOSES: Final = (
    ("asks for secrets or private files of the caller", {"FILE", "password", "credential", "secret", "token", "key"}),
    ("keeps something from the user", {"hidden", "secretly", "silently", "quietly", "mention", "tell", "inform"}),
    ("asks for what a model was told", {"conversation", "chat", "prompt", "history", "messag"}),
    ("sends data to an address", {"ADDRESS"}),
    ("has a model run a program", {"COMMAND"}),
    ("changes how other tools are called", {"tool", "NAME"}),
)
"""Purposes of an instruction, by words that show it."""


def may_inject(text: str) -> bool:
    """Return True if a text may contain an instruction; cheap, because it runs on every text."""
    if not text.isascii():
        return True
    lower = text.lower()
    for needle in NEEDLES:  # noqa: SIM110 - a generator costs as much as the search
        if needle in lower:
            return True
    return False


def instruction(text: str, *, field: bool = False) -> Instruction | None:
    """Return the first sentence of a text that tells a model what to do.

    Commands in the text of a `field` are addressed to the caller; elsewhere the first sentence describes the tool.
    """
    if not may_inject(text):
        return None
    return _examine(text, field) if len(text) > _LONGEST_REPEATED else _examine_repeated(text, field)


def _examine(text: str, field: bool) -> Instruction | None:
    for count, (start, sentence) in enumerate(sentences(text)):
        plain = normal(sentence)
        is_name = len(sentence) <= _LONGEST_NAME and _JOINED.fullmatch(sentence.strip())
        if is_name:
            plain = _HUMP.sub(" ", sentence.strip()).lower()
        begins = bool(is_name) or not (count or field)
        kind = _judge(plain, begins=begins, limit=_NAME_LIMIT if is_name else None)
        if kind:
            return Instruction(kind, " ".join(sentence.split())[:200], start)
    # Lines and blanks between the words of a phrase do not hide it.
    kind = _phrase(normal(text)) if "\n" in text else ""
    return Instruction(kind, " ".join(text.split())[:200]) if kind else None


_examine_repeated: Final = lru_cache(4096)(_examine)
"""The same, remembered: schemas say the same of many fields."""


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that are judged, with their places."""
    start = count = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while start < end and count < _MOST:
            part = text[start : min(end, start + _LONGEST)]
            if part.strip():
                yield start, part
                count += 1
            start += len(part)


def features(sentence: str, *, begins: bool) -> set[str]:
    """Return the words of a sentence in lower case and the pairs of neighbours; `begins` if it is the first of a text.

    The first word of a later sentence counts by itself too: there, a command is addressed to the reader.
    """
    found = [
        _stem(match[0]) if match.lastgroup == "word" else match.lastgroup or ""
        for match in _TOKEN.compiled.finditer(_MARKUP.sub(" ", sentence))
    ]
    pairs = {f"{one} {other}" for one, other in pairwise(found)}
    return {*found, *pairs, *(() if begins or not found else (f"^{found[0]}",))}


def _phrase(sentence: str) -> str:
    return next((kind for kind, pattern in PHRASES if pattern.search(sentence)), "")


def _judge(sentence: str, *, begins: bool, limit: float | None) -> str:
    """Return the purpose of a sentence that instructs a model; empty for any other."""
    weights = _weights()
    found = features(sentence, begins=begins)
    weight = sum(weights.get(one, 0.0) for one in found)
    # Most sentences are far from it. The patterns take longer to compile than a whole document to judge.
    if weight > _UNLIKELY or not sentence.isascii() or any(stem in sentence for stem in STEMS):
        kind = _phrase(sentence)
        if kind:
            return kind
    # The weights are those of English words.
    if weight <= (weights[_LIMIT] if limit is None else limit) or not is_english(words(sentence)):
        return ""
    return next((kind for kind, signs in _PURPOSES if not found.isdisjoint(signs)), _ANYTHING)


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)] + instead
    return word


@cache
def _weights() -> Mapping[str, float]:
    """Read the weights of words and pairs, and the limit."""
    rows = (line.split("\t") for line in read_data("instructions.txt.gz").splitlines())
    return {name: int(weight) / 100 for weight, name in rows}
