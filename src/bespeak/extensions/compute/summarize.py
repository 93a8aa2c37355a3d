"""SUMMARIZE: sentences that represent a text, figures of a collection, or a text of a language model (core 4.4).

The extractive method takes the sentences whose words are nearest to those of the whole text (its centroid), less for
what earlier ones have said, a little more for the first. It needs no words of any language, and the same text has the
same summary. The confidence is the cosine between the words of the summary and those of the source.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.http_route import as_text
from bespeak.contract.standard.definition import TEXT, object_of
from bespeak.contract.standard.floor import FLOOR
from bespeak.extensions.compute.language import ask_model
from bespeak.extensions.data.collection import Row, list_collections, read_rows
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread
from bespeak.runtime.handling import handler, invalid

_SUMMARIZE = next(method for method in FLOOR if method.name == "SUMMARIZE")
_MOST: Final = 1_000_000  # characters of texts
_MOST_FOR_MODEL: Final = 100_000
_MOST_SENTENCES: Final = 4000
_LENGTHS: Final = {"brief": (0.1, 1, 3), "standard": (0.2, 2, 7), "detailed": (0.35, 4, 20)}  # share, least, most
_COLUMNS: Final = {"brief": 3, "standard": 12, "detailed": 64}
_TOP: Final = 3
_MOST_WORDS: Final = 400  # of a sentence
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S+")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[:_-][a-z0-9]+)*")
_END: Final = re.compile(
    r"(?<![.!?…؟।])[.!?…؟।]++[\"'”’»)\]]{0,3}(?=\s|$)|[。！？]+[」』”’]{0,2}|\n\s*\n|\n\s*(?=[-*•#]\s)"
)
_SHORT: Final = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|\d{1,3}|mr|mrs|ms|dr|prof|st|vs|etc|cf|fig|no|nr|vol|inc|ltd|ca|bzw|usw|ggf|inkl|str|sr|sra|"
    r"art|mme|m|e\.g|i\.e|z\.\s?b|d\.\s?h|u\.\s?a|p\.\s?ej)\.$",
    re.IGNORECASE,
)  # abbreviations, initials and ordinals, after which a sentence goes on
_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")  # scripts without spaces between words


@handler
async def summarize(call: RoutedCall) -> Envelope:
    """Answer SUMMARIZE /."""
    given, source = call.input, call.input["source"]
    length, form = given.get("length", "standard"), given.get("format", "prose")
    told: dict[str, Any] = {"source_hash": f"sha256:{hashlib.sha256(as_text(source).encode()).hexdigest()}"}
    rows: list[Row] | None = None
    if isinstance(source, str) and _ADDRESS.fullmatch(source.strip()):
        raise invalid("source", "is an address, which is not read; send its content, or the name of a collection.")
    if isinstance(source, Mapping) or (
        isinstance(source, str)
        and len(source) <= 128
        and _NAME.fullmatch(source)
        and await list_collections(call, source)
    ):
        rows = await read_rows(call, _SUMMARIZE, source, "source")
        told["collection"] = source if isinstance(source, str) else source["collection"]
        told["source_hash"] = f"sha256:{hashlib.sha256(msgspec.json.encode(rows)).hexdigest()}"
    elif isinstance(source, list) and not all(isinstance(one, str) for one in source):
        if not all(isinstance(one, Mapping) for one in source):
            raise invalid("source", "must be a text, a list of texts, or rows; the list has both.")
        rows = source
    texts = [] if rows is not None else [source] if isinstance(source, str) else source
    if sum(map(len, texts)) > _MOST or (rows is None and not any(map(str.strip, texts))):
        raise invalid("source", f"must have 1 to {_MOST:,} characters of text; got {sum(map(len, texts)):,}.")
    if given.get("engine") == "model":
        return Envelope(
            told
            | await _ask(call, texts if rows is None else await compute_in_thread(call.agent_id, describe_rows, rows))
        )
    unused = [name for name in ("audience", "focus") if name in given and (rows is not None or name == "audience")]
    told |= {"not_applied": unused} if unused else {}
    told |= {"engine": "extractive", "deterministic": True}
    if rows is not None:
        summary = await compute_in_thread(call.agent_id, describe_rows, rows, _COLUMNS[length])
        first = f"There are {summary['rows']:,} rows with {summary['column_count']} columns."
        sentences = [first, *(_say_column(one) for one in summary["columns"])]
        told |= {"method": "figures of every row", "confidence": 1.0}
        return Envelope({**told, "summary": _write(sentences, form, summary), "sentences": len(sentences)})
    sentences, confidence = await compute_in_thread(
        call.agent_id, choose_sentences, texts, length, given.get("focus", "")
    )
    told |= {"method": "sentences nearest to the centroid", "confidence": confidence, "sentences": len(sentences)}
    return Envelope({**told, "summary": _write(sentences, form, {"sentences": sentences})})


async def _ask(call: RoutedCall, source: Any) -> dict[str, Any]:
    if len(as_text(source)) > _MOST_FOR_MODEL:
        raise invalid("source", f"must have at most {_MOST_FOR_MODEL:,} characters for a language model.")
    form, names = call.input.get("format", "prose"), ("length", "focus", "audience")
    kinds = {"prose": TEXT, "bullets": TEXT, "structured": {"type": "object", "minProperties": 1}}
    asked = {"source": source, "format": form, **{name: call.input[name] for name in names if name in call.input}}
    answer = await ask_model(call, _TASK, asked, object_of({"summary": kinds[form]}, closed=True))
    summary = answer.value["summary"]
    bags = [_unit(Counter(_words(as_text(one)))) for one in (summary, source)]
    told = {"summary": summary, "confidence": _round(_dot(*bags)), "sentences": len(split_sentences(as_text(summary)))}
    return {**told, **answer.document(), "method": "text of a language model"}


_TASK: Final = (
    "Summarize `source` in its own language, in the given `format` (bullets: lines that begin with `- `; structured: an"
    " object) and `length`, with regard to `focus` and for the `audience`, if they are given. Add no facts."
)


def _write(sentences: Sequence[str], form: str, structured: Any) -> Any:
    if form == "structured":
        return structured
    return "\n".join(f"- {one}" for one in sentences) if form == "bullets" else " ".join(sentences)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in any language; those of lists and headings end with their line."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        before, after = text[max(start, end.start() - 12) : end.start() + 1], text[end.end() : end.end() + 2].strip()
        if end[0] == "." and (_SHORT.search(before) or after[:1].islower()):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    return [" ".join(one.split()) for one in (*found, text[start:]) if _WORD.search(one)]


def _words(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of signs."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += [word[at : at + 2] for at in range(max(len(word) - 1, 1))] if _UNSPACED.search(word) else [word]
    return found


def choose_sentences(texts: Sequence[str], length: str, focus: str) -> tuple[list[str], float]:
    """Return the sentences of a summary in their order, and the confidence."""
    placed = [(number, one) for text in texts for number, one in enumerate(split_sentences(text))][:_MOST_SENTENCES]
    bags = [Counter(_words(one)[:_MOST_WORDS]) for _, one in placed]
    spread = Counter(word for bag in bags for word in bag)
    # A word of nearly every sentence tells nothing, and nor does a very short one that is in many.
    weight = {word: math.log(1 + len(bags) / many) * min(len(word), 6) for word, many in spread.items()}
    vectors = [_unit({word: (1 + math.log(many)) * weight[word] for word, many in bag.items()}) for bag in bags]
    whole = _add(vectors)
    wanted = set(_words(focus))
    scores = []
    for (number, _), bag, vector in zip(placed, bags, vectors, strict=True):
        focused = len(wanted & bag.keys()) / len(wanted) if wanted else 0.0
        brief = min(len(bag) / 6, 1.0)  # two words are not a sentence that represents anything
        scores.append(_dot(vector, whole) * brief * (1 + 0.25 / (1 + number)) + focused)
    share, least, most = _LENGTHS[length]
    count = min(max(round(len(placed) * share), least), most, len(placed))
    chosen: list[int] = []
    said = [0.0] * len(placed)  # nearest of the chosen ones
    while len(chosen) < count:
        left = (at for at in range(len(placed)) if at not in chosen)
        best = max(left, key=lambda at: (scores[at] - 0.5 * said[at], -at))
        chosen.append(best)
        said = [max(near, _dot(vector, vectors[best])) for near, vector in zip(said, vectors, strict=True)]
    return [placed[at][1] for at in sorted(chosen)], _round(_dot(_add([vectors[at] for at in chosen]), whole))


def _unit(vector: Mapping[str, float]) -> dict[str, float]:
    size = math.sqrt(math.fsum(value * value for value in vector.values())) or 1.0
    return {word: value / size for word, value in vector.items()}


def _add(vectors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for vector in vectors:
        for word, value in vector.items():
            total[word] = total.get(word, 0.0) + value
    return _unit(total)


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    small, large = sorted((one, other), key=len)
    return sum(value * large[word] for word, value in small.items() if word in large)


def _round(cosine: float) -> float:
    return round(min(cosine, 1.0), 4)


def describe_rows(rows: Sequence[Row], most: int = 64) -> dict[str, Any]:
    """Return figures of rows: how many, and of each column the range, the mean and the most frequent values."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names[:most]:
        values = [row[name] for row in rows if row.get(name) is not None]
        numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
        counts = Counter(as_text(one)[:80] for one in values)
        told: dict[str, Any] = {"name": name, "present": len(values), "distinct": len(counts)}
        if numbers and len(numbers) == len(values):
            told |= {"min": min(numbers), "max": max(numbers), "mean": round(math.fsum(numbers) / len(numbers), 6)}
        elif values and all(isinstance(one, str) and len(one) <= 40 for one in values):
            told |= {"min": min(values), "max": max(values)}
        if len(counts) < len(values):
            told["top"] = [{"value": value, "count": many} for value, many in counts.most_common(_TOP)]
        columns.append(told)
    return {"rows": len(rows), "column_count": len(names), "columns": columns}


def _say_column(one: Mapping[str, Any]) -> str:
    parts = [f"{one['distinct']:,} different values"]
    parts += [f"from {one['min']} to {one['max']}"] if "min" in one else []
    parts += [f"mean {one['mean']:,.6g}"] if "mean" in one else []
    parts += (
        ["most often " + ", ".join(f"{top['value']} ({top['count']:,})" for top in one["top"])] if "top" in one else []
    )
    return f"{one['name']}: {', '.join(parts)}."
