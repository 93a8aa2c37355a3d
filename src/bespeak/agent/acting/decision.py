"""Decisions: what an instruction means for a service map, and whether it may be called. Nothing here calls anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal

from bespeak.agent.acting.service_map import Candidate, Place, ServiceMap
from bespeak.agent.arguments.finding import Argument, Arguments, nest
from bespeak.agent.discovery.agent_card import MESSAGE
from bespeak.contract.confirmation import list_named
from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.matching.calibration import FLOOR
from bespeak.contract.matching.needs import read_need
from bespeak.contract.schema.subschemas import inline
from bespeak.contract.schema.validation import compile_schema
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief, printable
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.injection import instruction as find_injection
from bespeak.text.language.injection import role_marker, sentences
from bespeak.text.language.names import words
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import listed
from bespeak.text.reading.settings import VERB, setting
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import unescaped

Verdict = Literal["call", "confirm", "ask", "refuse", "none"]
_CLOSE: Final = 0.9  # share of the best score from which another endpoint may be meant, whatever the confidence
_SAME: Final = 0.98  # the same for endpoints that read, of another service
_NEAR: Final = 0.5  # share of the best confidence from which another endpoint may be meant
SEEN: Final = 4_000  # characters of an instruction that are read
MOST_QUESTIONS: Final = 20  # questions about one instruction
_ERASING: Final = listed("erasing")
_GRAVE: Final = listed("grave")
"""Verbs whose effect nobody can take back, whatever a service says: they erase, pay, tell or execute."""
_READING: Final = ("READ", "ANALYZE")
_PROMISED: Final = ("head", "coordinated", "light", "meant", "nominal")  # roles of verbs that say what is done
_LEADING: Final = re.compile(r"\A\W*(?:(?:then|and|also|afterwards|[a-z]{3,30}ly)\b\W*){0,5}", re.IGNORECASE)
_DENYING: Final = re.compile(r"(?:nothing|no|use|to)\b", re.IGNORECASE)  # "Use REMOVE to delete one."
_JUDGED: Final = 2_000  # characters of each text of a contract that are searched for what it really does
_OVERRIDE: Final = re.compile(
    r"\b(?:ignor|disregard|bypass|overrid|overrul|skip|circumvent|disabl|without)\w*\W+(?:\w+\W+){0,3}?"
    r"(?:contract|rule|confirm|polic|safe|guard|instruction|permission|approv|restriction|asking)",
    re.IGNORECASE,
)


def is_override(instruction: str) -> bool:
    """Return True if an instruction tells an agent to leave its rules. It changes none of them."""
    found = find_injection(instruction) is not None or role_marker(instruction, strict=True) is not None
    return found or _OVERRIDE.search(instruction) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingRules:
    """What the operator of an agent lets it do."""

    match_at: float = setting(
        FLOOR, "Confidence of a match below which no endpoint serves the instruction.", bounds=(0, 1)
    )
    read_at: float = setting(0.5, "Confidence from which endpoints that only read are called.", bounds=(0, 1))
    change_at: float = setting(0.85, "Confidence from which reversible changes are called.", bounds=(0, 1))
    choice_at: float = setting(
        0.5, "Confidence below which the user chooses between endpoints that change something.", bounds=(0, 1)
    )
    argument_at: float = setting(
        0.7, "Confidence of each argument from which endpoints that only read are called.", bounds=(0, 1)
    )
    allow: tuple[str, ...] = setting(
        (),
        "Irreversible calls that `--yes` may agree to, such as `CANCEL /booking`, or `agtp://hotel.example CANCEL"
        " /booking` if there are several services; others always need a person.",
    )
    refuse: tuple[str, ...] = setting((), "Verbs that are never called.", parse=str.upper, format=VERB)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done about an instruction, with the reasons. `to_json` gives it as data."""

    instruction: str
    verdict: Verdict
    """`call`, `confirm` (a person has to agree), `ask` (something is missing or open), `refuse` or `none`."""
    place: Place | None = None
    label: str = ""
    """Verb of the endpoint, with its namespace if there are several services."""
    confidence: float = 0.0
    effect: str = ""
    """Impact of a call as this agent judges it, whatever the contract says."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    offered: Mapping[str, Argument] = field(default_factory=dict)
    """Doubtful values, to be asked about."""
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    """Values in the instruction that no argument takes."""
    candidates: tuple[tuple[str, Candidate], ...] = ()
    """Endpoints that may be meant, with their labels, the best first."""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # deprecations and doubts about the contract
    chosen: bool = False  # True if the user has chosen the endpoint
    has_rival: bool = False  # True if another endpoint may be meant as well
    whole: str = ""  # instruction that this one is a clause of; empty if it is all

    def needs_person(self, rules: ActingRules) -> bool:
        """Return True if only a person may agree to the call, and no option."""
        # A right for one service is none for another, which may give itself any name.
        place = self.place
        names = set() if place is None else {f"{alias}{place.endpoint}" for alias in place.aliases}
        grave = self.effect == "irreversible" and names.isdisjoint(rules.allow)
        return grave or self.overrides or bool(place is not None and place.doubt)

    @property
    def target(self) -> Place:
        """Endpoint of a decision that has one."""
        assert self.place is not None
        return self.place

    def unjudged(self) -> Decision:
        """Return the decision before its arguments were judged. A choice stays open, whatever arguments there are."""
        fresh = self if self.is_open else replace(self, verdict="call", reasons=())
        return replace(fresh, missing=(), offered={})

    @property
    def overrides(self) -> bool:
        """True if the instruction tells an agent to leave its rules."""
        return is_override(self.whole or self.instruction)

    @property
    def values(self) -> dict[str, Any]:
        """Input of the call."""
        return nest({name: one.value for name, one in self.arguments.items()})

    @property
    def is_open(self) -> bool:
        """True if the user has to say which of several endpoints is meant, before anything else."""
        return self.verdict == "ask" and (self.has_rival or not self.missing)

    def to_json(self) -> dict[str, Any]:
        """Return the record of the decision."""
        found = None if self.verdict == "none" else self.place
        others = [
            {"method": label, "path": one.place.endpoint.path, "confidence": round(one.confidence, 4)}
            for label, one in self.candidates
            if one.place is not found
        ]
        return {
            "match": {
                "method": None if found is None else self.label,
                "path": None if found is None else found.endpoint.path,
                "confidence": round(self.confidence, 4),
                "alternatives": others,
            },
            "arguments": {
                name: {
                    "value": one.value,
                    "span": None if one.span is None else list(one.span),
                    "confidence": round(one.confidence, 4),
                }
                for name, one in self.arguments.items()
            },
            "missing": list(self.missing),
            "decision": self.verdict,
        }

    def explain(self) -> list[str]:
        """Return the match, its evidence, the arguments with their source and the reasons, as lines of text."""
        lines = [f"instruction  {brief(self.instruction)}"]
        for number, (label, one) in enumerate(self.candidates):
            head = "" if number else "match"
            lines.append(f"{head:<11}  {label} {one.place.endpoint.path}  {one.confidence:.2f}  ({one.parts})")
        for head, arguments in (("argument", self.arguments), ("perhaps", self.offered)):
            for name, given in arguments.items():
                lines.append(f"{head:<11}  {name} = {brief(given.value)}{_source(self.instruction, given)}")
        lines += [f"missing      {name}" for name in self.missing]
        lines += [f"note         {note}" for note in self.notes]
        lines.append(f"decision     {self.verdict}: {'; '.join(self.reasons) or 'nothing stands against it'}")
        return [printable(line) for line in lines]


def _source(instruction: str, one: Argument) -> str:
    quoted = "" if one.span is None else f' from "{instruction[slice(*one.span)]}"'
    reason = f", {one.reason}" if one.reason else ""
    return f"{quoted}  {one.confidence:.2f}{reason}"


def choose(service_map: ServiceMap, instruction: str, rules: ActingRules) -> Decision:
    """Match an instruction to an endpoint; the verdict is `call` if one is meant, else `ask` or `none`."""
    text = instruction[:SEEN]
    base = Decision(text, "none")
    if len(instruction) > SEEN:  # what is not read may take back what is
        why = f"the instruction has {len(instruction):,} characters, and at most {SEEN:,} are read; say it in fewer"
        return replace(base, verdict="refuse", reasons=(why,))
    if not text.strip():
        return replace(base, reasons=("the instruction is empty",))
    if not service_map.places:
        reasons = tuple(map(str, service_map.failures)) or ("there is no endpoint",)
        return replace(base, reasons=reasons)
    found = service_map.match(text, floor=0.0)
    named = tuple((service_map.label(one.place), one) for one in found)
    if not found:
        return replace(base, reasons=("no endpoint has anything in common with the instruction",))
    best = found[0]
    base = replace(base, candidates=named, confidence=best.confidence)
    verbs = {verb.upper() for verb in read_need(text).verbs}
    meant = [key for one in service_map.services for key in one.left_out if key[0] in verbs]
    if meant and best.place.endpoint.method not in verbs:  # nothing else is done instead
        why = f"it may mean {' '.join(meant[0])}, which is left out because its contract does not conform"
        return replace(base, verdict="refuse", reasons=(why,))
    if best.confidence < rules.match_at:
        reason = f"no endpoint serves it: the nearest has a confidence of {best.confidence:.2f}"
        return replace(base, reasons=(f"{reason}, below {rules.match_at:.2f}",))
    return select(base, service_map, best.place, rules)


def select(
    base: Decision, service_map: ServiceMap, place: Place, rules: ActingRules, *, chosen: bool = False
) -> Decision:
    """Use a place for an instruction; ask if another one is meant as likely and the effect of one is not harmless."""
    effect, why = effect_of(place.endpoint)
    confidence = next((one.confidence for _, one in base.candidates if one.place is place), base.confidence)
    decided = replace(
        base,
        verdict="call",
        place=place,
        label=service_map.label(place),
        confidence=1.0 if chosen else confidence,
        effect=effect,
        reasons=(why,) if why else (),
        chosen=chosen,
        has_rival=False,
    )
    own = next((one for _, one in base.candidates if one.place is place), None)
    others = [one for _, one in base.candidates if one.place is not place]
    if chosen or own is None:
        return decided
    if effect == "informational":
        # To read at the wrong endpoint does no harm, but to tell the wrong service does.
        if not any(one.score >= own.score * _SAME and one.place.namespace != place.namespace for one in others):
            return decided
        reason = "another service may be meant as well; name the one that is meant"
    else:
        unlikely = own.confidence < rules.choice_at
        if not any(
            one.score >= own.score * _CLOSE or (unlikely and one.confidence >= own.confidence * _NEAR) for one in others
        ):
            return decided
        reason = f"the effect is {effect}, and another endpoint may be meant as well"
    return replace(decided, verdict="ask", has_rival=True, reasons=(*decided.reasons, reason))


def judge(decided: Decision, found: Arguments, rules: ActingRules, endpoints: Sequence[Endpoint] = ()) -> Decision:
    """Add the arguments to a chosen endpoint, and decide whether it may be called."""
    place = decided.target
    places = {name: number for number, name in enumerate(place.fields)}
    ordered = sorted(found.found, key=lambda one: places.get(one.name.partition(".")[0], len(places)))
    arguments = {one.name: one for one in ordered}
    offered = {one.name: one for one in found.offered if one.name not in arguments}
    arguments, missing, faults = _check(place, arguments)
    missing = tuple(dict.fromkeys((*(name for name in found.missing if name not in arguments), *missing)))
    notes = (*_notes(place), *(f"no argument takes {brief(text)}" for text in decided.unused))
    decided = replace(decided, arguments=arguments, offered=offered, missing=missing, notes=notes)
    if place.takes_words and decided.effect != "irreversible" and (why := _change_in(decided.values)):
        decided = replace(decided, effect="irreversible", reasons=(*decided.reasons, why))
    if refusals := tuple(_refusals(decided, rules, endpoints)):
        return _with(decided, "refuse", *refusals)
    if decided.verdict == "ask":
        return decided
    if missing:
        return _with(decided, "ask", f"needed and not said: {', '.join(missing)}", *faults)
    return _release(decided, rules)


def _change_in(values: Mapping[str, Any]) -> str:
    """Return why a message is not harmless, whichever skill it is sent for: its agent may do whatever it says."""
    said = str(values.get(MESSAGE, ""))
    if len(said) > SEEN:
        return "the message is too long to be judged, so it counts as irreversible"
    texts = (text for line in said.splitlines() for _, text in sentences(line))
    verbs = (verb for text in texts for verb in read_need(text).verbs)
    verb = next((one for one in verbs if _verb_effect(one) != "informational"), "")
    return f"the message says {verb.upper()}, and nothing says that it can be undone" if verb else ""


def assume(base: Decision, decided: Decision, later: Iterable[str], rules: ActingRules) -> Decision:
    """Judge a completed decision as if it had the arguments `later`. `base` is the decision before it was completed."""
    place, missing = decided.place, tuple(name for name in decided.missing if name not in set(later))
    if place is None or missing == decided.missing or decided.verdict != "ask" or base.verdict == "ask":
        return replace(decided, missing=missing)
    decided = replace(decided, missing=missing, reasons=base.reasons)
    if missing:
        return _with(decided, "ask", f"needed and not said: {', '.join(missing)}")
    return _release(decided, rules)


def _release(decided: Decision, rules: ActingRules) -> Decision:
    """Decide whether a complete call may be made without asking anybody (AGIS 6.2, 13)."""
    place, effect = decided.target, decided.effect
    if effect == "irreversible":
        return _with(decided, "confirm", "it cannot be undone, so a person has to agree")
    reasons = []
    guidance = place.endpoint.semantic.confidence_guidance or 0.0
    own = rules.read_at if effect == "informational" else rules.change_at
    floor = max(own, guidance)
    if decided.confidence < floor:
        whose = "that the service asks for" if guidance > own else "of this agent"
        reasons.append(f"the confidence {decided.confidence:.2f} is below the {floor:.2f} {whose}")
    needed = rules.argument_at if effect == "informational" else max(rules.argument_at, rules.change_at)
    weak = [name for name, one in decided.arguments.items() if one.confidence < needed]
    if weak:
        reasons.append(f"these arguments are not certain: {', '.join(weak)}")
    if place.doubt:
        reasons.append(place.doubt)
    if place.elsewhere:
        reasons.append(f"the call goes to {place.elsewhere}, and not to the service that was named")
    is_clear = decided.chosen or _names_deed(decided.instruction)
    if not (is_clear or (effect == "informational" and _is_plain(place))):
        reasons.append("the instruction does not say in words that this agent knows what is to be done")
    if decided.unused and effect != "informational":
        reasons.append(f"no argument takes {', '.join(map(brief, decided.unused))}")
    if not place.endpoint.reviewed:
        reasons.append("nobody has reviewed this contract")
    if decided.overrides:
        reasons.append("the instruction tells an agent to leave its rules, which changes none of them")
    if reasons:
        return _with(decided, "confirm", *reasons)
    return _with(decided, "call", f"{effect}, and the confidence {decided.confidence:.2f} is at least {floor:.2f}")


def _with(decided: Decision, verdict: Verdict, *reasons: str) -> Decision:
    return replace(decided, verdict=verdict, reasons=tuple(dict.fromkeys((*decided.reasons, *reasons))))


def _refusals(decided: Decision, rules: ActingRules, endpoints: Sequence[Endpoint]) -> Sequence[str]:
    place = decided.target
    endpoint = place.endpoint
    found = []
    if endpoint.method in rules.refuse:
        found.append(f"the rules of this agent refuse {endpoint.method}")
    if isinstance(fault := compile_schema(endpoint.input_schema), Fault):
        found.append(f"its input schema cannot be used: {fault.message}")
    if decided.effect != "informational" and place.doubt:
        found.append(f"it changes something, and {place.doubt}")
    if not decided.missing and isinstance(calls := list_named(endpoint, decided.values, endpoints), Fault):
        found.append(f"what it would call cannot be shown: {calls.message}")
    return found


def _check(
    place: Place, arguments: dict[str, Argument]
) -> tuple[dict[str, Argument], tuple[str, ...], tuple[str, ...]]:
    """Drop arguments that break the schema; return the others, what is missing, and why."""
    needed = [*place.needed]
    validator, faults = compile_schema(place.endpoint.input_schema), []
    if not isinstance(validator, Fault):
        values = nest({name: one.value for name, one in arguments.items()})
        for wrong in () if validator.is_valid(values) else validator.violations(values):
            name = name_at(wrong.pointer, arguments)
            if arguments.pop(name, None) is not None:
                faults.append(f"{name}: {wrong.message}")
                needed.append(name)
    filled = {*arguments, *(name.partition(".")[0] for name in arguments)}
    return arguments, tuple(dict.fromkeys(name for name in needed if name not in filled)), tuple(faults)


def field_of(place: Place, name: str) -> Mapping[str, Any]:
    """Return the schema of a field of the input; empty if it has none."""
    schema = found = place.endpoint.input_schema
    for part in name.split("."):
        found = as_mapping(inline(as_mapping(found.get("properties")).get(part), schema))
    return found


def name_at(where: str, names: Iterable[str]) -> str:
    """Return the argument at a pointer into the input, `guest.name` for `/guest/name`; else its first part."""
    parts = [unescaped(part) for part in where.split("/")[1:]]
    found = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    known = set(names)
    return next((name for name in found if name in known), found[-1] if found else "")


def takes(place: Place, name: str, value: Any) -> bool:
    """Return True if the schema takes a value for a field, whatever else is missing."""
    validator = compile_schema(place.endpoint.input_schema)
    if isinstance(validator, Fault):
        return False
    violations = validator.violations(nest({name: value}))
    return not any(name_at(wrong.pointer, (name,)) == name for wrong in violations)


def _notes(place: Place) -> list[str]:
    notes = [place.doubt] if place.doubt else []
    gone = place.endpoint.deprecated
    if gone is not None:
        successor = " ".join(filter(None, (gone.successor_method, gone.successor_path)))
        removed = f", removed in {gone.removed_in}" if gone.removed_in else ""
        notes.append(f"deprecated since {gone.deprecated_in}{removed}{f'; use {successor}' if successor else ''}")
    return notes


def _names_deed(instruction: str) -> bool:
    """Return True if a verb of an instruction says what is to be done; words that are not known are taken for nouns."""
    heads = head_verbs(instruction)
    return bool(read_need(instruction).verbs) and not (heads and all(one.kind == "nominal" for one in heads))


def _is_plain(place: Place) -> bool:
    """Return True if the contract itself shows that a call only reads: its intent says so in words that are known."""
    heads = head_verbs(place.endpoint.semantic.intent[:1_000])
    return bool(heads) and all(_verb_effect(one.verb) == "informational" for one in heads)


@lru_cache(maxsize=1024)
def _verb_effect(verb: str, unknown: str = "informational") -> str:
    """Return the least effect that a verb has, by its meaning; `unknown` for one that nothing is known of."""
    if verb in _GRAVE:
        return "irreversible"
    classes = operation_classes(verb)
    if classes is None:
        return unknown
    if classes.main in _READING:
        return "informational"
    return "irreversible" if classes.main == "DELETE" else "reversible"


def effect_of(endpoint: Endpoint) -> tuple[str, str]:
    """Return the impact of a call, and why it is worse than the contract says; empty if the contract is believed.

    AGIS 13: a service that declares too little does not get more done. The verb and the intent are judged as well.
    """
    declared = endpoint.semantic.impact if endpoint.semantic.impact in IMPACTS else "irreversible"
    verb = endpoint.method.lower()
    worst, why = declared, ""
    heads = [one.verb for one in head_verbs(endpoint.semantic.intent[:1_000]) if one.kind != "own"][:2]
    told = [(verb, "the method"), *[(head, "the intent") for head in heads]]
    # On the web a path or an operation may be named after what it does: GET /users/{id}/delete.
    told += [(part, "the path") for part in endpoint.path.lower().split("/") if part in _ERASING]
    told += [(part, "its name") for part in words(endpoint.semantic.mcp_tool_name or "")[:1] if part in _ERASING]
    for word, where in told:
        effect = _verb_effect(word, "reversible" if where == "the method" else "informational")
        # CANCEL may well be reversible, as its contract says; a service that says it only reads is not believed.
        if effect == "irreversible" and declared == "reversible" and word not in _GRAVE:
            effect = declared
        if IMPACTS.index(effect) > IMPACTS.index(worst):
            worst, why = effect, f"{where} says {word.upper()}, so it counts as {effect} and not as {declared}"
    if declared == "informational" and worst != "irreversible":
        semantic = endpoint.semantic
        texts = (("intent", semantic.intent), ("outcome", semantic.outcome), ("description", endpoint.description))
        for name, text in texts:
            if word := _grave_deed(text[:_JUDGED]):
                why = f"the {name} says {word.upper()}, so it counts as irreversible and not as {declared}"
                return "irreversible", why
    return worst, why


@lru_cache(maxsize=1024)
def _grave_deed(text: str) -> str:
    """Return a verb that a text promises and nobody can take back, in whichever of its sentences; empty without one."""
    for _, written in sentences(text):
        sentence = _LEADING.sub("", written)
        for one in () if _DENYING.match(sentence) else head_verbs(sentence):
            if one.kind in _PROMISED and _verb_effect(one.verb) == "irreversible":
                return one.verb
    return ""
