"""Everything guessed about a candidate, for any kind of upstream: method, path, impact and sentences.

All pairs of method and path differ, and no two match one request equally well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, takewhile
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Semantic
from bespeak.contract.grammar.syntax import TemplateSet, leaking_segment, parse_template
from bespeak.documents.adoption.evidence import acts
from bespeak.documents.adoption.facade import UNSURE, Candidate, Guess, Risk
from bespeak.documents.adoption.path_choice import PathChoice, choose_path, other_paths, topic_of
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.documents.adoption.verb_choice import VerbChoice, choose_verb, guess_impact, is_list
from bespeak.documents.adoption.verb_words import bare_words, heads_of, is_plain, is_verb
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.language.consistency import judge
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.injection import addressed, link, role_marker
from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.names import LIGHT, RELATING, is_plural, main_class, plural, singular, with_article, words
from bespeak.text.language.operation_class import CHANGERS
from bespeak.text.language.phrases import mechanism, object_places, weakness
from bespeak.text.language.sentence import is_english, is_several, listed, names
from bespeak.text.language.sentence import words as sentence_words
from bespeak.text.language.verb_form import PARTICLES, classify, lemmas, two_word_verb

_DOUBLING: Final = re.compile(  # one syllable, or one that is stressed at its end
    r"[^aeiou]*[aeiou][^aeiouwxy]|(?:per|sub|com|re|e)mit|(?:trans|in)fer|cancel|retag|embed|snapshot|bootstrap|(?:cont|pat)rol"
)
_IRREGULAR: Final = {verb: verb for verb in listed("unchanged-participles")} | names("participles")
_NO_NUMBER: Final = listed("without-number")
_MYSELF: Final = frozenset({"me", "self", "current", "mine"})  # segments that mean the caller
_AS: Final = ("by", "with", "for", "from", "in", "of")  # they begin a segment that qualifies: /pets/by-status
_MAKING: Final = frozenset({"CREATE", "REGISTER", "SUBMIT", "DEFINE", "ESTABLISH", "GENERATE"})
_OPENING: Final = re.compile(  # filler words before the verb
    r"\A(?:at any time,? )?(?:you can|use this to|\w+ is used to|(?:an? |the )?(?:\w+ )?endpoint (?:to|that)|"
    r"(?:use )?this (?:\w+ )?(?:endpoint|operation|method|call|resource|tool|api|request|service)"
    r"(?: to| (?:can be|is) used to| will)?|"
    r"(?:allows|lets|enables) (?:you|users|clients|the caller)(?: to)?) (?=[a-z])",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"\s*\([^()]*\)\Z")  # brackets at the end: the arguments of a function, the method, a note
_CALLED: Final = re.compile(r"invoke (?:action|function)\b", re.IGNORECASE)  # words of a generator
_JOINED: Final = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z]+){3,}")
"""Words of a program: `sendMail`, `SubjectAccessReview`; not GitHub."""
_FEW_NAMES: Final = 4  # maximum number of words in the name of a function that reads as a sentence
_FEW: Final = 10  # maximum number of words in a phrase that gets a verb put before it


@dataclass(frozen=True, slots=True)
class Sentences:
    intent: str
    outcome: str
    description: str
    guesses: tuple[Guess, ...]


def write_sentences(candidate: Candidate, verb: str, path: str, *, impact: str, word: str = "") -> Sentences:
    """Write intent, outcome and description of a candidate under a verb, chosen for a word, and a path."""
    thing = _thing(path, verb, word)
    if not thing.single and is_list(candidate):
        *before, last = thing.listed.split()
        thing = replace(thing, listed=" ".join((*before, plural(last))))
    intent, source, sure = next(
        (found for found in _intents(candidate, verb, thing) if _is_fit(verb, found[0], said=found[1] != _MADE)),
        (f"{verb.capitalize()} {_with_article(thing.name)} for the caller", _MADE, 0.4),
    )
    one = singular(thing.listed)
    said_of_one = one in words(candidate.summary) and thing.listed not in words(candidate.summary)
    # DELETE /users with "Delete user"
    outcome = _outcome(verb, replace(thing, listed=one) if said_of_one and impact != "informational" else thing, word)
    acting = acts(candidate) if impact != "informational" else ""
    if acting:  # neither sentence may hide that a GET acts
        about = f"named {thing.owner}" if thing.owner else thing.name if thing.name != acting else "caller"
        wish = _imperative(first_sentence(candidate.summary) or "-")
        deed = wish[0].lower() + wish[1:] if wish.lower().startswith(f"{acting} ") else f"{acting} the {about}"
        intent = f"{verb.capitalize()} the answer to a call that may {deed}"
        source, sure = f"the word '{acting}'", 0.4
        outcome = f"The {about} has been {participle(acting)}, and the answer is returned"
    if weakness(outcome, verb, frozenset(words(path))):  # of a server, a call or a result
        outcome = f"The matching {outcome.partition(' ')[2]}"
    said = plain_text(candidate.description or candidate.summary, 600)
    description = said.text or plain_text(candidate.summary, 600).text or f"{intent}."
    risk: Risk = "low" if impact == "informational" else "medium"
    intent_risk: Risk = "medium" if sure < UNSURE and impact != "informational" else "low"
    guesses = [
        Guess("/semantic/intent", "the intent", f"from {source}", sure, risk=intent_risk),
        Guess("/semantic/outcome", "the outcome", f"from {verb} and the path", 0.5, risk=risk),
    ]
    if fault := said.fault or plain_text(candidate.summary).fault:
        guesses.append(Guess("/description", "left out", f"the upstream's text holds {fault}", 0.3, risk="high"))
    return Sentences(intent, outcome, description, tuple(guesses))


@dataclass(frozen=True, slots=True)
class _Thing:
    name: str  # name in the singular, `pet`
    listed: str  # name as in the path, `pets`
    single: bool  # True if a parameter selects one of them
    owner: str = ""  # thing that it belongs to, if a parameter selects that: `user` in /users/{id}/orders


def _thing(path: str, verb: str, word: str) -> _Thing:
    segments = [segment for segment in path.split("/") if segment]
    literals = [at for at, segment in enumerate(segments) if not segment.startswith("{")]
    silent = {*_MYSELF, *RELATING, "id"}
    named = [at for at in literals if segments[at] not in silent and segments[at].partition("-")[0] not in _AS]
    # APPROVE /orders/{id}/approval is about the order.
    said = word if main_class(verb.lower()) == "ANALYZE" else ""
    while len(named) > 1 and (
        meanings().verb_of(segments[named[-1]]) == verb.lower()
        or segments[named[-1]] == said
        or segments[named[-1]].isdecimal()
        or is_plain(segments[named[-1]])
    ):
        named.pop()
    at = named[-1] if named else -1
    listed = (segments[at] if named else "item").replace("-", " ")
    *before, last = listed.split()
    name = " ".join((*before, singular(last)))
    single = any(part.startswith("{") or part.isdecimal() or part in _MYSELF for part in segments[at + 1 :])
    selected = at > 1 and segments[at - 1].startswith("{") and not segments[at - 2].startswith("{")
    owner = singular(segments[at - 2].replace("-", " ")) if selected and not single else ""
    return _Thing(name, listed, single, owner)


def _intents(candidate: Candidate, verb: str, thing: _Thing) -> Iterator[tuple[str, str, float]]:
    """Yield sentences for the intent, the best first, with their source and confidence."""
    texts = [(candidate.summary, "the summary", 0.9), (candidate.description, "description", 0.8)]
    if candidate.method is None:
        # AGIS C.3(b): a description that says what the caller wants stays as it is.
        texts = [(candidate.summary or candidate.description, "the description", 0.8)]
        yield first_sentence(texts[0][0]), "the description", 0.9
    for text, source, sure in texts:
        bare = _ASIDE.sub("", first_sentence(text))
        said = _in_words(_OPENING.sub("", bare), thing) if bare != candidate.name or " " in bare else ""
        if not said or said.startswith("/") or _CALLED.match(said) or not is_english(sentence_words(said)):
            continue
        heads = head_verbs(said)
        first, *others = said.split()
        gerund, adverb = first.lower().endswith("ing") and len(others) >= _FEW, first.lower().endswith("ly")
        if source == "description" and heads and (gerund or (heads[0].start > 0 and not adverb)):
            continue  # it describes the actor or a meaning instead of the wish
        phrase = len(said.split()) <= _FEW and " you " not in said
        if phrase and (not heads or heads[0].kind == "nominal"):
            if _repeats(verb, said):
                continue
            yield _led(verb, said), source, sure - 0.1
        yield _imperative(said), source, sure
    yield _plainly(verb, thing), _MADE, 0.5


def _in_words(said: str, thing: _Thing) -> str:
    """Write out a function name or a title: `getUserById`, `Read Own Items`. A name without the thing says nothing."""
    parts = said.split()
    if len(parts) == 1 and said.isidentifier() and len(words(said)) > 1:
        named = words(said)
        about = len(named) <= _FEW_NAMES and not {*thing.name.split(), *thing.listed.split()}.isdisjoint(named)
        return " ".join(named).capitalize() if about else ""
    if len(parts) > 1 and all(part.istitle() or part.isupper() or part.isdigit() for part in parts):
        return " ".join((parts[0], *(part.lower() if part.istitle() else part for part in parts[1:])))
    return " ".join(" ".join(words(part)) if _JOINED.fullmatch(part) else part for part in parts)


def _plainly(verb: str, thing: _Thing) -> str:
    if thing.name == verb.lower() and not thing.owner:
        return f"{verb.capitalize()} what the caller asks for"
    if thing.single:
        which = f"the named {thing.name}"
    else:
        which = _with_article(thing.name) if verb in _MAKING else f"{'the ' if thing.owner else ''}{thing.listed}"
    return f"{verb.capitalize()} {which}{f' of the named {thing.owner}' if thing.owner else ''}"


def _led(verb: str, phrase: str) -> str:
    """Put a verb before a phrase that has none; the participle in `Updated user` becomes the verb."""
    first, _, rest = phrase.partition(" ")
    if rest and any(lemma.verb == verb.lower() and lemma.form != "base" for lemma in lemmas(first.lower())):
        return f"{verb.capitalize()} {rest}"
    named = first[1:] != first[1:].lower()
    return f"{verb.capitalize()} {phrase if named else phrase[0].lower() + phrase[1:]}"


def _repeats(verb: str, phrase: str) -> bool:
    """Return True if a phrase has the noun of a verb: "Phone number validation" of VALIDATE."""
    said = phrase.lower().split()
    forms = (lemma.verb for word in said[1:] for lemma in lemmas(word) if lemma.form != "base")
    return verb.lower() in (*said, *map(meanings().verb_of, said), *forms)


def _imperative(sentence: str) -> str:
    """Turn a sentence into a command: `Returns a pet` becomes `Return a pet`."""
    heads = head_verbs(sentence)
    if heads and heads[0].start == 0 and heads[0].kind in ("head", "light") and " " not in heads[0].verb:
        shown, verb = sentence[: heads[0].end], heads[0].verb
        bent = [one.verb for one in lemmas(shown.lower()) if len(one.verb) <= len(shown)]
        if verb not in bent:  # `Powers off` is of `stop`, but only its first word is bent
            verb = bent[0] if bent else shown
        return f"{verb.capitalize()}{sentence[heads[0].end :]}"
    first = sentence.partition(" ")[0]
    if heads and first.endswith("ly") and heads[0].start == len(first) + 1 and heads[0].kind == "head":
        return f"{first.capitalize()} {heads[0].verb}{sentence[heads[0].end :]}"
    return sentence[0].upper() + sentence[1:]


_MADE: Final = "the verb and the path"


def _is_fit(verb: str, intent: str, *, said: bool) -> bool:
    """Return True for a sentence that may be the intent; one that the upstream has said need not prove the verb."""
    has_length = len(intent.split()) > 1 and len(intent) <= 300
    verdict = judge(verb, intent).verdict
    said = said and any(head.start == 0 for head in head_verbs(intent))
    if not has_length or (verdict == "violation" if said else verdict != "consistent") or is_several(intent):
        return False
    # Neither does it name a mechanism, nor does it speak to a model.
    return not (mechanism(intent) or addressed(intent) or link(intent) or role_marker(intent, strict=True))


_WRITING: Final = CHANGERS | listed("writing")
_ENDING: Final = listed("deleting")  # words after which a thing is gone


def _outcome(verb: str, thing: _Thing, word: str) -> str:
    main = main_class(verb.lower())
    removes = verb in ("REMOVE", "PURGE")
    if (
        word
        and word != verb.lower()
        and word not in (_ENDING if removes else _WRITING)
        and (removes or main == "UPDATE")
    ):
        return f"The {thing.name} has been {participle(word)}"
    several = not thing.single and is_plural(thing.listed.split()[-1])
    if verb == "COUNT":
        return f"The number of {plural(thing.listed)} is in the answer"
    if main == "ANALYZE":
        return f"The result for the {thing.name} is in the answer"
    if main == "READ":
        if verb in ("SEARCH", "QUERY") and thing.single:
            return f"What matches in the {thing.name} is in the answer"
        return f"The matching {thing.listed} are in the answer" if several else f"The {thing.name} is in the answer"
    if verb in _MAKING:
        name = _with_article(thing.name)
        return f"{name[0].upper()}{name[1:]} exists as the input describes it"
    if verb in ("REMOVE", "PURGE"):
        return f"The {thing.listed} no longer exist" if several else f"The {thing.name} no longer exists"
    if main == "UPDATE" and verb in ("UPDATE", "MODIFY", "REPLACE", "SET", "CHANGE", "EDIT"):
        return f"The {f'{thing.listed} have' if several else f'{thing.name} has'} the values of the input"
    if thing.name in ("logout", "signout", "logoff"):
        return "The session has ended"
    if verb == "AUTHENTICATE":
        return "The caller is authenticated"
    return f"The {thing.name} has been {'made' if thing.name == verb.lower() else participle(verb.lower())}"


@lru_cache(maxsize=512)
def participle(verb: str) -> str:
    """Return the past participle of a verb: booked, paid, submitted."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    particle = next((one for one in (*PARTICLES, "in") if verb.endswith(one) and verb != one), "")
    if particle and (classify(verb).kind == "phrasal" or verb == "chargeback"):
        return f"{participle(verb.removesuffix(particle))} {particle}"
    forms = [(form, kind) for form, readings in lexicon().irregular.items() for base, kind in readings if base == verb]
    for wanted in ("participle", "past"):
        if found := [form for form, kind in forms if kind == wanted]:
            return found[0]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if _DOUBLING.fullmatch(verb) else f"{verb}ed"


def _with_article(thing: str) -> str:
    return f"the {thing}" if thing.rsplit(maxsplit=1)[-1] in _NO_NUMBER else with_article(thing)


_AUXILIARY: Final = frozenset({"is", "are", "was", "one", "more", "several", "multiple"})
_MOST_WORDS: Final = 3  # words of a sentence that name a thing


def named_paths(candidate: Candidate, word: str, verbs: frozenset[str], *, says_all: bool) -> list[str]:
    """Return paths, the best first; `word` is the verb in the name. What the verb does not say, the path says."""
    whole, parts = words(candidate.name), bare_words(candidate)
    things = list(dropwhile(RELATING.__contains__, _things(parts, word)))
    short = "-".join(takewhile(lambda part: part not in RELATING, things))
    found = [short, "-".join(things), "-".join(whole)] if short else []
    found += [word] if not short and not says_all and word in parts else []
    found += ["-".join(_object(candidate)), *candidate.tags[:1]]
    names = dict.fromkeys(name for name in found if name)
    before = f"/{candidate.service}" if candidate.service else ""
    nouns = (name if leaking_segment(f"/{name}", verbs) is None else plural(name) for name in names)
    return [f"{before}/{noun}" for noun in nouns] or [before]


def _things(parts: Sequence[str], word: str) -> list[str]:
    """Return a name without the verbs at its beginning: what follows the chosen one, else what precedes it."""
    start = 2 if parts[1:] and two_word_verb(parts[0], parts, 0) == word else 0  # turn_on
    while start < len(parts) and (parts[start] in (word, "or", "and") or is_verb(parts[start])):
        start += 1
    if not start and parts[:1] and parts[0] in LIGHT and parts[1:2] == (word,):
        start = 2
    rest = list(parts[start:])
    if not start and word in rest[1:]:
        at = rest.index(word, 1)
        return rest[at + 1 :] or rest[:at]
    return rest


def _object(candidate: Candidate) -> Iterator[str]:
    """Yield the words for the object of the first sentence: `changes` in "Records changes to the repository"."""
    for text in (candidate.summary, candidate.description):
        if not (heads := heads_of(text)):
            continue
        sentence = sentence_words(text)
        at = next((place for place, one in enumerate(sentence) if one.end == heads[0].end), 0)
        places = object_places([one.lower for one in sentence], at + 1)
        # Only words that follow each other name one thing.
        joined = [place for index, place in enumerate(places) if place == places[0] + index]
        named = [sentence[place].lower for place in joined if sentence[place].lower not in _AUXILIARY]
        if 0 < len(named) <= _MOST_WORDS and all(part.replace("-", "").isalnum() for part in named):
            yield from named
            return


_OF_THE_METHOD: Final = {"PUT": "REPLACE", "PATCH": "MODIFY"}  # meaning of a method if the other one has UPDATE


@dataclass(frozen=True, slots=True)
class EndpointClaim:
    verb: VerbChoice
    path: PathChoice
    moved: str = ""  # endpoint that already had the first choice; empty if the first choice was free

    @property
    def confidence(self) -> float:
        """Confidence in the place; low if another endpoint has the first choice."""
        return min(self.verb.confidence, 0.5) if self.moved else self.verb.confidence

    def guesses(self, candidate: Candidate) -> Iterator[Guess]:
        """Yield the guesses about the verb and the path that a person has to confirm."""
        doubtful = self.confidence < UNSURE
        reads = candidate.claims_to_read and candidate.method != "OPTIONS"
        why = f"{self.verb.why}{f', as {self.moved} is taken' if self.moved else ''}"
        risk: Risk = "high" if doubtful and not reads else "medium" if doubtful else "low"
        yield Guess("/method", self.verb.verb, why, self.confidence, " or ".join(self.verb.others[:3]), risk)
        why = "; ".join((*self.path.reasons[:4], *([f"{self.moved} is taken"] if self.moved else ())))
        if candidate.path is None:
            yield Guess("/path", self.path.path, why, 0.6)
        # Renamed parameters are not a guess: the URL of the handler shows the mapping.
        elif self.moved or self.path.path != self.path.url_path(candidate.path.partition("#")[0]):
            yield Guess("/path", f"{self.path.path} for {candidate.path[:120]}", why, 0.8)


_MOST_UNUSABLE: Final = 20  # choices that are not valid templates, after which another path is chosen


def claim_places(
    candidates: Sequence[Candidate], catalog: Catalog, occupied: Iterable[tuple[str, str]] = ()
) -> list[EndpointClaim]:
    """Claim a method and a path for each candidate; those that keep the described path choose first."""
    verbs = [choose_verb(candidate, catalog) for candidate in candidates]
    wanted = [EndpointClaim(verb, _path(one, verb, catalog)) for one, verb in zip(candidates, verbs, strict=True)]
    taken: dict[str, TemplateSet] = {}
    for method, path in occupied:
        template = parse_template(path)
        if not isinstance(template, Fault):
            taken.setdefault(method, TemplateSet()).add(template)
    order = sorted(range(len(wanted)), key=lambda at: bool(wanted[at].path.reasons))
    claims = {at: _settle(candidates[at], wanted[at], catalog, taken) for at in order}
    return [claims[at] for at in range(len(wanted))]


def _settle(
    candidate: Candidate, wanted: EndpointClaim, catalog: Catalog, taken: dict[str, TemplateSet]
) -> EndpointClaim:
    rival, unusable = "", 0
    for verb, path in _choices(candidate, wanted, catalog):
        template = parse_template(path)
        if isinstance(template, Fault):
            unusable += 1
            if unusable == _MOST_UNUSABLE:  # its numbers would never end
                plain = replace(wanted.path, path="/operation", reasons=("no name in it can be a path",))
                return _settle(Candidate(path=plain.path), replace(wanted, path=plain), catalog, taken)
            continue
        if (standing := taken.setdefault(verb, TemplateSet()).add(template)) is None:
            if not rival:
                return wanted
            return EndpointClaim(replace(wanted.verb, verb=verb), replace(wanted.path, path=path), rival)
        rival = rival or f"{verb} {standing.path}"
    raise AssertionError("numbered paths never end")


def _choices(candidate: Candidate, wanted: EndpointClaim, catalog: Catalog) -> Iterator[tuple[str, str]]:
    verb = wanted.verb.verb
    yield verb, wanted.path.path
    own = _OF_THE_METHOD.get(candidate.method or "")
    if verb == "UPDATE" and own in catalog.names:
        yield own, wanted.path.path
    if candidate.path is None:
        yield from ((verb, other.path) for other in _named(candidate, wanted.verb, catalog))
    things = _things(bare_words(candidate), wanted.verb.word)[:_FEW_NAMES]
    named = "-".join(things[:-1] if things[-1:] and things[-1] in RELATING else things)
    said = words(wanted.path.path)
    names = [named] if not {*map(singular, words(named))}.issubset(map(singular, said)) else []
    yield from ((verb, path) for path in other_paths(wanted.path, candidate.path or "", verb, catalog.names, names))


def _path(candidate: Candidate, verb: VerbChoice, catalog: Catalog) -> PathChoice:
    if candidate.path is None:
        return next(_named(candidate, verb, catalog))
    chosen = {"name": candidate.name, "topic": topic_of(candidate, catalog.names), "word": verb.word}
    return choose_path(candidate.path, verb.verb, catalog.names, **chosen, says_all=verb.says_all)


def _named(candidate: Candidate, verb: VerbChoice, catalog: Catalog) -> Iterator[PathChoice]:
    """Yield the paths for a candidate without one. A word that its verb does not say stays in the path."""
    word = verb.word if verb.says_all else ""
    topic = candidate.tags[0] if candidate.tags else ""
    reasons = (f"no path is described; {candidate.name_kind} names the subject",)
    for described in named_paths(candidate, verb.word, catalog.names, says_all=verb.says_all):
        choice = choose_path(described, verb.verb, catalog.names, name=candidate.name, topic=topic, word=word)
        yield replace(choice, reasons=reasons)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Contract of a candidate, except for the parts that depend on how its upstream is called."""

    candidate: Candidate
    method: str
    path: PathChoice
    description: str
    semantic: Semantic
    guesses: tuple[Guess, ...]


def judge_all(
    candidates: Sequence[Candidate], catalog: Catalog, occupied: Iterable[tuple[str, str]] = ()
) -> list[Judgement]:
    """Judge the candidates of one upstream, in their order. `occupied` are methods with paths that are taken."""
    claims = claim_places(candidates, catalog, occupied)
    return [_judge(candidate, claim, catalog) for candidate, claim in zip(candidates, claims, strict=True)]


def choose_scopes(title: str, impact: str, *, has_credential: bool) -> tuple[tuple[str, ...], list[Guess]]:
    """Choose the scopes of an endpoint. Changes and the operator's credential are never open to everyone."""
    if impact == "informational" and not has_credential:
        return (), []
    domain = "-".join(words(title))[:24].strip("-") or "upstream"
    scope = f"{domain}:{'read' if impact == 'informational' else 'write'}"
    why = "it changes something" if impact != "informational" else "it uses the operator's own credential"
    risk: Risk = "medium" if impact != "informational" else "low"
    return (scope,), [Guess("/required_scopes", f"scope {scope}", why, 0.5, "a narrower scope", risk)]


def _judge(candidate: Candidate, claim: EndpointClaim, catalog: Catalog) -> Judgement:
    verb = claim.verb.verb
    impact = guess_impact(candidate, claim.verb, catalog)
    said = write_sentences(candidate, verb, claim.path.path, impact=impact.impact, word=claim.verb.word)
    semantic = Semantic(
        intent=said.intent,
        actor="agent",
        outcome=said.outcome,
        capability=impact.capability,
        confidence=impact.confidence,
        impact=impact.impact,
        is_idempotent=impact.is_idempotent,
    )
    guesses = (*claim.guesses(candidate), *impact.guesses, *said.guesses)
    return Judgement(candidate, verb, claim.path, said.description, semantic, guesses)
