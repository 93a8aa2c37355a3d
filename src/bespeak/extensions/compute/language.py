"""TRANSLATE and GENERATE: new texts, by a language model or templates of the service (Tier 2 4.5, 4.12, 10.4)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.http_route import as_text
from bespeak.contract.schema.validation import Validator
from bespeak.contract.standard.definition import LANGUAGE, TEXT, list_of, object_of
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.compute.methods import read_schema
from bespeak.protocol import status
from bespeak.runtime.answer import Envelope
from bespeak.runtime.bindings.language_model import RETRY, LanguageModel, ModelAnswer, ModelError
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import FairSemaphore, run_in_thread
from bespeak.runtime.handling import RefusedError, handler, invalid, refusal, run_function

PART: Final = "language_model"
_GENERATE = STANDARD["GENERATE"]
_MOST_TEXTS: Final = 1000
_MOST_CHARACTERS: Final = 100_000
_BATCH_TEXTS: Final = 50  # of one request to the model
_BATCH: Final = 4000  # characters of one request
_KEPT: Final = re.compile(
    r"\{\{?[\w.:-]*\}?\}|\$\{[^{}]{1,80}\}|%\(\w+\)[sdifr]|%(?:\d+\$)?\d*(?:\.\d+)?[sdif](?!\w)"
    r"|</?[A-Za-z][^<>]{0,300}>|&(?:[a-z]{2,8}|#\d{1,6});|https?://[^\s<>\"]+"
)
"""What a translation must have as often as its source: placeholders, tags, character references and addresses."""


class SharedModel(NamedTuple):
    """The model of a server, with places for the calls that use it at the same time."""

    model: LanguageModel
    places: FairSemaphore


async def ask_model(
    call: RoutedCall,
    task: str,
    given: Mapping[str, Any],
    schema: Mapping[str, Any],
    check: Callable[[Any], str | None] = lambda _: None,
) -> ModelAnswer:
    """Have the language model of the server carry out a task. Agents wait for it in rotation. Raises RefusedError."""
    shared: SharedModel | None = call.server.part(PART)
    if shared is None:
        message = f"{call.method} needs a language model: set `url` and `model` in [language_model] of bespeak.toml."
        raise refusal(status.UNAVAILABLE, "provider-not-configured", message)
    (model, places), owner = shared, call.agent_id or ""
    message = "Other calls wait for the language model."
    busy = refusal(status.UNAVAILABLE, "provider-busy", message, retry_after=RETRY)
    if not places.has_room(owner):
        raise busy
    try:
        async with asyncio.timeout(model.settings.timeout) as waiting, places.take(owner):
            waiting.reschedule(None)
            return await model.ask(task, given, schema, check)
    except ModelError as error:
        raise refusal(status.UNAVAILABLE, error.code, str(error), retry_after=error.retry_after) from None
    except TimeoutError:
        raise busy from None


async def run_own(call: RoutedCall, kind: str, name: str, source: Any) -> tuple[Joined, Any]:
    """Run an extractor or a template of the service in the authority of the caller; return it and its output."""
    declared = call.server.registrar.participants.get(kind, {})
    usable = {key: one for key, one in declared.items() if not call.principal.scopes.missing(one.participant.scopes)}
    if name not in usable:
        message = f"There is no {kind} {name[:80]!r}; there are: {', '.join(usable) or 'none'}."
        raise refusal(status.UNPROCESSABLE, f"unknown-{kind}", message)
    route = usable[name].routes["run"]
    [parameter] = route.endpoint.input_schema["properties"]
    try:
        return usable[name], await run_function(call, route, {parameter: source})
    except RefusedError as error:
        for one in error.refused.details.get("violations", ()):
            one["pointer"] = one["pointer"].replace(f"/{parameter}", "/source", 1)
        raise


@handler
async def translate(call: RoutedCall) -> Envelope:
    """Answer TRANSLATE /. Keys, numbers and texts without letters stay as they are."""
    given, target = call.input, call.input["target_language"]
    whole = [msgspec.json.decode(msgspec.json.encode(given["content"]))]
    places = [(one, key) for one, key in _find_texts(whole) if any(map(str.isalpha, one[key]))]
    size = sum(len(one[key]) for one, key in places)
    if not places or len(places) > _MOST_TEXTS or size > _MOST_CHARACTERS:
        form = f"1 to {_MOST_TEXTS:,} texts with letters, of {_MOST_CHARACTERS:,} characters in all"
        raise invalid("content", f"must have {form}; got {len(places):,} of {size:,}.")
    about = {name: value for name, value in given.items() if name not in ("content", "context")}
    detected, usage, answer = "", Counter[str](), None
    while places:
        count, size = 0, 0
        for one, key in places[:_BATCH_TEXTS]:
            size += len(one[key])
            if count and size > _BATCH:
                break
            count += 1
        texts = [one[key].strip() for one, key in places[:count]]
        made = list_of({**TEXT, "maxLength": 10 * _MOST_CHARACTERS}, least=count, most=count)
        schema = object_of({"source_language": LANGUAGE, "translations": made}, closed=True)
        answer = await ask_model(call, _TRANSLATING, {**about, "texts": texts}, schema, partial(_find_lost, texts))
        detected = detected or answer.value["source_language"]
        usage.update(answer.usage)
        for (one, key), text, new in zip(places[:count], texts, answer.value["translations"], strict=True):
            one[key] = one[key].replace(text, new.strip(), 1)  # what is around it are blanks
        places = places[count:]
    assert answer is not None, "there is a text"
    told = {"source_language": given.get("source_language", detected), "detected": "source_language" not in given}
    told |= {"content": whole[0], "target_language": target, **answer.document(), "usage": dict(usage)}
    return Envelope(told)


_TRANSLATING: Final = (
    "Translate each of `texts` into `target_language` (BCP 47), in their order, with the given `formality` if there is"
    " one. Keep placeholders, tags, character references and addresses as they are. Tell the language of the source."
)


def _find_texts(whole: Any) -> list[tuple[Any, Any]]:
    """Return the container and the key of each text in a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [whole]
    while waiting:
        one = waiting.pop()
        members = list(one.items() if isinstance(one, dict) else enumerate(one))
        found += [(one, key) for key, value in members if isinstance(value, str)]
        waiting += [value for _, value in reversed(members) if isinstance(value, dict | list)]
    return found


def _find_lost(texts: list[str], answer: Any) -> str | None:
    """Return what a translation has lost or added of what it must keep."""
    for number, (text, made) in enumerate(zip(texts, answer["translations"], strict=True)):
        wanted, got = Counter(_KEPT.findall(text)), Counter(_KEPT.findall(made))
        if wanted != got:
            parts = [*(wanted - got), *(got - wanted)]
            return f"translation {number} must have {', '.join(parts)[:100]} exactly as often as its source"
        if not made.strip():
            return f"translation {number} is empty"
    return None


_MEDIA: Final = {"json": "application/json", "html": "text/html", "markdown": "text/markdown"}
_REVIEW: Final = {
    "code": "Generated code is only text: RUN takes procedures that somebody else has reviewed and approved.",
    "html": "HTML of a language model may have scripts. Check it before a browser shows it.",
}


@handler
async def generate(call: RoutedCall) -> Envelope:
    """Answer GENERATE /: by the named template, else by the language model."""
    given, kind, form = call.input, call.input["output_type"], call.input.get("format")
    validator: Validator | None = None
    if isinstance(form, Mapping):
        if kind != "json":
            raise invalid("format", f"is a schema, which only json can meet; the output_type is {kind}.")
        validator = read_schema(_GENERATE, form, "format")
    told: dict[str, Any]
    if "template" in given:
        content = await _fill_template(call, kind)
        told = {"engine": "template", "template": given["template"], "deterministic": True}
        wrong = [] if validator is None else await run_in_thread(validator.violations, content)
        if wrong:
            message = f"The result does not meet the schema: {wrong[0].pointer}: {wrong[0].message}"
            raise refusal(_GENERATE, "schema-not-met", message, field="/format")
    else:
        wanted = TEXT if kind != "json" else {}
        schema = object_of({"content": form if isinstance(form, Mapping) else wanted}, closed=True)
        asked = {name: given[name] for name in _GENERATE.parameters if name in given}
        answer = await ask_model(call, _GENERATING, asked, schema)
        content, told = answer.value["content"], answer.document()
    told |= {"output_type": kind, "content": content, "media_type": _MEDIA.get(kind, "text/plain")}
    # Tier 2 10.4: the digest is what a reviewer approves.
    is_risky = kind == "code" or (kind == "html" and told["engine"] == "model")
    told |= {"sha256": hashlib.sha256(as_text(content).encode()).hexdigest(), "review_required": is_risky}
    return Envelope({**told, "review": _REVIEW[kind]} if is_risky else told)


_GENERATING: Final = (
    "Create new content of the kind `output_type` from `source`, in the given `format`, `length` and `style`. The"
    " member `content` of the answer has nothing but this content. State no facts that the source does not have."
)


async def _fill_template(call: RoutedCall, kind: str) -> Any:
    """Return what a template makes of the source. For HTML, it gets texts that are escaped."""
    given = call.input
    unused = next((name for name in ("length", "style") if name in given), None)
    if unused is not None:
        raise invalid(unused, "must not be given with a template, which decides it.")
    whole = [msgspec.json.decode(msgspec.json.encode(given.get("source", {})))]
    if kind == "html":
        for one, key in _find_texts(whole):
            one[key] = escape(one[key])
    joined, content = await run_own(call, "template", given["template"], whole[0])
    content = content["content"] if joined.participant.options == "text" else content
    if isinstance(content, str) == (kind == "json"):
        made = "a text" if kind == "json" else "data"
        raise invalid("output_type", f"is {kind}, but the template makes {made}.")
    return content
