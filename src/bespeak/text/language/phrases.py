"""Phrases whose action another word names: light and vague verbs, frames, nouns of action, and hints.

Hints support a method, but never contradict it: to create a payment is to pay, or to describe what was paid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from itertools import pairwise, takewhile
from typing import Final

from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.names import is_plural, singular
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import LatePattern, lines, listed, table, word_pairs, word_set
from bespeak.text.language.verb_form import FormName, lemmas

DETERMINERS: Final = listed("determiners")
MODALS: Final = word_set("will can may must should shall could would might does do")
BEING: Final = word_set("is are was were be been being gets get")
SUBJECTS: Final = listed("subjects")
LEADING: Final = listed("leading")
JUMPS: Final = listed("jumps")
PURPOSES: Final = listed("purposes")  # verbs of means; the purpose follows: sends an image to analyze it
ASKING_THAT: Final = word_set("allow enable let permit request ask cause require demand arrange")
"""Verbs whose object may be said in the passive: allows a file to be deleted, requests that a job be cancelled."""
THROUGH_A_NOUN: Final = word_set("make issue provide give offer start expose support")
MEANS: Final = listed("means")
CLAUSES: Final = word_set("that which who whose where when if because so while unless until after before once")
PREPOSITIONS: Final = listed("prepositions")
BARE_NOUNS: Final = listed("bare-nouns")  # words behind a noun at the start: "comment by id"
VERBS_FIRST: Final = listed("verbs-first")  # verbs that begin a summary far more often than their nouns
READ_NOUNS: Final = listed("read-nouns")  # nouns that a phrase without a verb returns: "Details of an order"
USED: Final = word_set("used designed intended able meant responsible useful called")  # before "to" and "for": used to
EMPTY: Final = word_set("make perform do conduct execute carry take run undertake effect handle")
"""Verbs that say nothing about the operation without their object."""
ASKING: Final = listed("asking")  # verbs whose object says more: "submits a cancellation request"
DEFERRING: Final = frozenset({"schedule", "queue", "enqueue", "stage"})
"""Verbs whose object says more only if it is a noun of action: "schedules the removal of", but not "a visit"."""
LIGHT: Final = EMPTY | ASKING | DEFERRING
OBTAINING: Final = frozenset({"request", "provide", "give"})  # verbs that read when one of _INFORMATION is their object
_INFORMATION: Final = listed("information")
DOING: Final = ("tion", "sion", "ment", "al", "ance", "ence", "ure", "sis", "very", "tions", "ments", "sions", "als")
"""Endings of nouns that name an action: cancellation, payment; not those of things: entry, item."""
WRAPPERS: Final = listed("wrappers")  # nouns after the one that matters: a cancellation request
_STOPS: Final = listed("stops")
_SKIPPED: Final = listed("skipped")
REACH: Final = 8


def action_noun(noun: str) -> str | None:
    """Return the verb of a noun that names an action by its ending: deletion, removal."""
    found = meanings().verb_of(noun)
    return found if found and noun.endswith(DOING) else None


def meant_verb(verb: str, sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb that the object of a light verb names, and the place of that noun."""
    if verb not in LIGHT and verb not in OBTAINING:
        return None
    if not (phrase := object_places(sentence, at + 1)):
        return None
    given = "to" in sentence[phrase[-1] + 1 : phrase[-1] + 2]  # provides details to somebody
    answers = sentence[phrase[-1]] in _INFORMATION
    answers = answers or (sentence[at] == "provides" and any(sentence[place] in READ_NOUNS for place in phrase))
    if verb in OBTAINING and sentence[at + 1] != "back" and answers and not given:
        return READING, phrase[-1]
    if verb not in LIGHT or (verb == "take" and "from" in sentence[at : at + REACH]):
        return None
    last = phrase[-1]
    if sentence[last] == "query":
        return "query", last
    if verb in DEFERRING:
        return (found, last) if (found := action_noun(sentence[last])) else None
    if sentence[last] in WRAPPERS:
        if len(phrase) > 1 and (found := named_verb(sentence[phrase[-2]])):
            return found, phrase[-2]
        if verb in ASKING and verb != "place":
            return None
    found = named_verb(sentence[last])
    return (found, last) if found else None


def object_places(sentence: Sequence[str], start: int) -> list[int]:
    """Return the places of the object's words, without articles; "a request to" counts up to "to"."""
    places: list[int] = []
    for place in range(start, min(start + REACH, len(sentence))):
        word = sentence[place]
        if word in _STOPS:
            if places:
                break
            continue
        if word not in _SKIPPED:
            places.append(place)
    return places


def named_verb(noun: str) -> str | None:
    """Return the verb of a noun: by derivation, by the same spelling, or by its -ing form."""
    if noun in READ_NOUNS:
        return None
    found = meanings().verb_of(noun)
    if found and found in meanings().hand and noun.endswith(DOING):
        return found
    for verb, form in lemmas(noun):
        if form in {"base", "third", "gerund"} and verb in meanings().hand:
            shares = lexicon().share(verb)
            if form == "gerund" or shares[0] >= 0.1 or not any(shares):
                return verb
    return None


_READINGS: Final = table("readings")  # meanings of a verb by a following word; the first matching entry counts
_REACH: Final = 9


def readings(verb: str, sentence: Sequence[str], at: int) -> tuple[str, ...]:
    """Return the possible meanings of a vague verb here; empty if no following word decides."""
    nearby = sentence[at + 1 : at + 1 + _REACH]
    behind = list(takewhile(lambda word: word not in CLAUSES or word == "until", nearby))
    return next((verbs for cue, verbs in _READINGS.get(verb, {}).items() if cue in behind), ())


LAUNCHING: Final = listed("launching")  # verbs that set something going: "starts a job that deletes"
TAKING: Final = frozenset({"accept", "take", "receive", "wait"})  # verbs before the deed: "Accepts a text and returns"
_STARTING: Final = frozenset({"start", "begin", "continue", "resume", "initiate", "commence"})
_PLANNING: Final = word_set("schedule queue enqueue stage submit request")
_JOBS: Final = word_set("job jobs run runs task tasks execution workflow workflows process processes build crawl")
_WRAPPERS: Final = WRAPPERS | _JOBS
_FORMS: Final[dict[str, FormName]] = {"that": "third", "which": "third", "to": "base", "for": "gerund", "of": "gerund"}
"""Form of the inner verb by the word before it."""


def inner_verb(verb: str, sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb behind the object of a launching verb and its place: a job that deletes, a request to delete."""
    if verb in _STARTING and at + 1 < len(sentence) and (found := verb_in_form(sentence[at + 1], "gerund")):
        return found, at + 1
    if verb not in LAUNCHING:
        return None
    for place in range(at + 1, min(at + REACH, len(sentence) - 2)):
        word = sentence[place]
        if word in _WRAPPERS and (form := _FORMS.get(sentence[place + 1])):
            after = _behind_adverbs(sentence, place + 2)
            if sentence[after] == "be":
                return passive_verb(sentence, after)
            if found := verb_in_form(sentence[after], form):
                return found, after
            return _noun_behind(sentence, after) if form == "gerund" else None
        if verb in _PLANNING and (word, sentence[place + 1]) == ("to", "be"):
            return passive_verb(sentence, place + 1)
        if word in PREPOSITIONS or word in CLAUSES:
            return None
    return None


def passive_verb(sentence: Sequence[str], be: int) -> tuple[str, int] | None:
    """Return the participle behind "be" and its place: "allows a file to be deleted"."""
    after = _behind_adverbs(sentence, be + 1)
    found = _participle(sentence[after])
    return (found, after) if found else None


def behind_condition(sentence: Sequence[str]) -> int | None:
    """Return the place behind the comma of a leading clause or phrase: "If it exists, removes", "For a given id, …"."""
    if not sentence or (sentence[0] not in CLAUSES and sentence[0] not in _LEADING_PHRASES):
        return None
    return next(
        (at + 1 for at, (word, after) in enumerate(pairwise(sentence)) if word == "," and after not in _AND), None
    )


_AND: Final = frozenset({"and", "or", "but"})  # words by which a clause goes on behind a comma
_LEADING_PHRASES: Final = (PREPOSITIONS | {"given", "upon", "depending"}) - {"to", "and", "or", "using"}


def verb_in_form(word: str, form: FormName) -> str | None:
    return next((lemma.verb for lemma in lemmas(word) if lemma.form == form), None)


def _behind_adverbs(sentence: Sequence[str], at: int) -> int:
    last = len(sentence) - 1
    while at < last and (sentence[at].endswith("ly") or sentence[at] in MODALS):
        at += 1
    return min(at, last)


def _noun_behind(sentence: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the verb of a noun of action: "a request for the deletion of a file"."""
    while at < len(sentence) - 1 and sentence[at] in DETERMINERS:
        at += 1
    found = action_noun(sentence[at])
    return (found, at) if found else None


READING: Final = "get"  # verb for phrases that name a result


def nominal_verb(sentence: Sequence[str]) -> tuple[str, int] | None:
    """Return the verb for the last noun of the first noun phrase, and the place of that noun."""
    if not (phrase := _phrase(sentence)):
        return None
    last = phrase[-1]
    word = sentence[last]
    if word in WRAPPERS and word not in {"query", "message"}:
        return None
    if word in READ_NOUNS or (is_plural(word) and lexicon().counts(singular(word)).noun):
        return READING, last
    follower = sentence[last + 1] if last + 1 < len(sentence) else ""
    known = meanings()
    verb = known.verb_of(word)
    if verb and verb in known.hand and word.endswith(DOING) and (len(phrase) > 1 or follower == "of"):
        return verb, last
    for verb, form in lemmas(word) if len(phrase) > 1 else ():
        if form in {"base", "gerund"} and verb in known.hand:
            return verb, last
    return (READING, last) if follower == "by" and word != "used" else None


def _phrase(sentence: Sequence[str]) -> list[int]:
    """Return the places of the words up to the first preposition; empty if an article inside implies a verb."""
    phrase: list[int] = []
    for at, word in enumerate(sentence[:REACH]):
        if word in PREPOSITIONS or word in CLAUSES or not word[0].isalnum():
            if phrase:
                break
        elif word not in DETERMINERS:
            phrase.append(at)
        elif phrase:
            return []
    return phrase


Hint = tuple[str, int]  # a verb, and the place of the word that names it
_ENTERING: Final = frozenset({"submit", "enter"})
_TOWARDS: Final = frozenset({"to", "into", "in"})
_DESTINATIONS: Final = word_pairs("trash=delete deletion=delete bin=delete archive=archive archives=archive")


def hinted_verb(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
    finders = (find for verbs, find in _FINDERS if verb in verbs)
    return next((found for find in finders if (found := find(verb, sentence, at))), None)


def _destined(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find what a thing is marked as, or scheduled for: "as deleted", "for deletion", "to be deleted"."""
    for place in range(at + 2, min(at + 2 * REACH, len(sentence) - 1)):
        word, behind = sentence[place], sentence[place + 1]
        if (word, behind) == ("to", "be"):
            return passive_verb(sentence, place + 1)
        if word == "for":
            nouns = ((action_noun(noun), at) for at, noun in enumerate(sentence[place + 1 : place + 3], place + 1))
            found = next(((verb, at) for verb, at in nouns if verb), None)
        else:
            said = place + (word in {"as", "to"})
            verb = _participle(sentence[said]) if said > place or behind in {"status", "state"} else None
            found = (verb, said) if verb else None
        if found:
            return found
    return None


def _moved(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find a destination that is as good as an action: "to the trash"."""
    to = next((place for place in range(at + 1, min(at + REACH, len(sentence))) if sentence[place] in _TOWARDS), at)
    places = range(to + 1, min(to + 4, len(sentence)) if to > at else 0)
    return next(((found, place) for place in places if (found := _DESTINATIONS.get(sentence[place]))), None)


def _ended(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the opposite of what stops: "stops following" is unfollow."""
    return _undone(sentence[at + 1], at + 1) if sentence[at + 1 : at + 2] and sentence[at + 1].endswith("ing") else None


def _lifted(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the opposite of what is removed: "removes the lock" is unlock."""
    places = range(at + 1, min(at + REACH + 2, len(sentence)))
    return next((found for place in places if (found := _undone(sentence[place], place))), None)


def _reversed(_: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find a removal that is taken back: "cancels the deletion of a key" is restore."""
    for place in object_places(sentence, at + 1)[-2:]:
        classes = operation_classes(action_noun(sentence[place]) or "")
        if classes is not None and classes.main == "DELETE":
            return "restore", place
    return None


def _hint_made(verb: str, sentence: Sequence[str], at: int) -> Hint | None:
    """Find the action that a thing stands for: "creates a payment", "submits a verification code"."""
    phrase = object_places(sentence, at + 1)
    for place in reversed(phrase if verb in _ENTERING else phrase[-1:]):
        if found := named_verb(sentence[place]):
            return found, place
    return None


def _undone(word: str, place: int) -> Hint | None:
    return next(((f"un{one.verb}", place) for one in lemmas(word) if f"un{one.verb}" in meanings().hand), None)


def _participle(word: str) -> str | None:
    found = lemmas(word.rpartition("-")[2])
    return next((lemma.verb for lemma in found if lemma.form in {"past", "participle"}), None)


LEFT_BEHIND: Final = listed("left-behind")  # nouns of what a deed leaves behind: to create a tag is not to tag
MAKING: Final = word_set(
    "create add open generate register record issue log place enter submit enable allow permit"
)  # verbs whose object may be a deed, which is then one way to say it: "creates a payment"
_FINDERS: Final[tuple[tuple[frozenset[str], Callable[[str, Sequence[str], int], Hint | None]], ...]] = (
    (
        word_set("mark flag schedule queue set stage put label declare designate send assign change update modify"),
        _destined,
    ),
    (word_set("move send put transfer drop throw place"), _moved),
    (word_set("cancel reverse revert undo abort"), _reversed),
    (word_set("stop end cease"), _ended),
    (word_set("remove delete lift clear drop take revoke cancel end"), _lifted),
    (MAKING, _hint_made),
)


_SEEN: Final = 1_000  # limit of characters that are searched
_NOUNS: Final = lines("inside")  # one of them is in every match: a cheap test before the long pattern
_OWNED: Final = LatePattern(
    r"\b(?:(?:caller|user|customer|client|tenant|guest|agent|analyst)(?:['’]s|s['’])?|their|his|her|your|given|supplied"
    r"|provided|named|selected|chosen|spreadsheets?|sheets?|csv|notion|airtable|restaurants?|seats?|seating|dinner"
    r"|dining|poker|pool)(?!\w)"
)  # owner or kind of a thing: the thing itself is then the goal
_FEW: Final = r"(?:[\w-]++\ ){0,4}?"
_ONE: Final = r"(?:an?\ |the\ |our\ |its\ |some\ )?(?:[\w-]++\ ){0,2}?"
_STORE: Final = (
    r"(?:database|databases|dbs?|datastore|data\ store|data\ warehouse|cache|redis|memcached?|postgres(?:ql)?|mysql"
    r"|mongo(?:db)?|dynamodb|sqlite|elasticsearch)"
)
_SERVICE: Final = (
    r"(?:micro-?services?|back-?\ ?end(?:\ (?:service|server|api|system)s?)?"
    r"|internal\ (?:api|service|endpoint|function|method)s?|(?:downstream|upstream)\ (?:service|api|system)s?"
    r"|lambda(?:\ function)?s?|g?rpc(?:\ (?:method|service|endpoint))?s?|stored\ procedures?"
    r"|(?:rest|http)\ (?:api|endpoint)s?|api|endpoints?)"
)
_INSIDE: Final = LatePattern(
    rf"""
    \b(?:inserts?|upserts?|writes?|persists?|saves?|stores?|appends?|creates?|adds?|updates?|deletes?|removes?)\ {_FEW}
      (?:records?|rows?|tuples?)\ (?:in|into|to|from|of|on)\ {_FEW}
      (?:tables?|{_STORE})\b
  | \b(?:inserts?|upserts?)\ {_FEW}(?:into|in|to)\ {_FEW}(?:tables?|collections?|index(?:es)?|{_STORE})\b
  | \b(?:inserts?|upserts?|writes?|persists?|saves?|stores?|updates?|deletes?|removes?|reads?|selects?|fetch(?:es)?
        |loads?|queries|query)\ {_FEW}(?:into|in|to|from)\ {_ONE}{_STORE}\b
  | \b(?:inserts?|upserts?|writes?|deletes?|updates?|selects?)\ (?:an?\ |the\ |one\ |some\ |new\ |all\ )*
      (?:database\ |db\ |table\ |sql\ )?(?:rows?|tuples?|db\ records?|database\ records?)\b
  | \b(?:creates?|adds?|removes?)\ (?:an?\ |the\ |one\ |new\ )*(?:database|db)\ (?:records?|rows?|entry|entries)\b
  | \b(?:queries|query|scans?|hits?|polls?|flushes|truncates?)\ (?:the|our|its)\ (?:[\w-]++\ ){{0,2}}?
      (?:tables?|{_STORE})\b(?!\ of\b)
  | \b(?:executes?|runs?|performs?|issues?|fires?)\ {_ONE}
      (?:sql|stored\ procedures?|(?:insert|select|update|delete)\ statements?|crud(?:\ operations?)?
        |(?:database|db)\ (?:query|queries|transactions?|operations?))\b
  | \b(?:calls?|invokes?|hits?|triggers?|proxies\ to|forwards?\ {_FEW}to|delegates?\ {_FEW}to|talks\ to)\ {_FEW}
      {_SERVICE}\b
  | \b(?:publish(?:es)?|push(?:es)?|enqueues?|emits?|sends?|puts?|produces?|posts?|drops?|writes?|adds?)\ {_FEW}
      (?:to|onto|on|into|in)\ {_ONE}(?:kafka|rabbitmq|s[nq]s|nats|pub/?sub
        |(?:message|job|task|work|event|kafka|background)\ (?:queue|bus|broker|stream|topic))s?\b
  | \benqueues?\ {_ONE}(?:jobs?|messages?|tasks?|events?)\b
  | \b(?:sends?|makes?|issues?|performs?|executes?|fires?|submits?)\ {_ONE}
      (?:get|post|put|delete|patch|https?|rest|g?rpc|ajax|api)\ (?:requests?|calls?)\b
  | \b(?:de|un)?(?:serializes?|serialises?|marshals?)\ {_ONE}
      (?:payload|json|request|response|object|body|dto|model|struct)s?\b
  | \bparses?\ (?:the\ )?(?:request|json)\ (?:payload|body)\b
  | \breturns?\ (?:an?\ |the\ )?(?:http\ (?:status\ )?(?:code\ )?\d{{3}}|status\ code)\b
  | \b(?:sets?|updates?|flips?|toggles?)\ {_FEW}(?:columns?\ (?:in|of|on)\ {_FEW}tables?|(?:foreign|primary)\ keys?)\b
    """,
    re.VERBOSE,
)
_STATEMENT: Final = LatePattern(r"\b(?:INSERT INTO|DELETE FROM|SELECT [\w*, .]{1,80} FROM|UPDATE \w{1,64} SET)\b")
_STATEMENTS: Final = ("INSERT INTO", "DELETE FROM", "SELECT ", "UPDATE ")


def mechanism(sentence: str) -> str | None:
    """Return the words about the inside of a system, if there are any."""
    seen = sentence[:_SEEN]
    if any(start in seen for start in _STATEMENTS) and (statement := _STATEMENT.search(seen)) is not None:
        return statement[0]
    plain = " ".join(seen.lower().split())
    if not any(noun in plain for noun in _NOUNS):
        return None
    found = _INSIDE.search(plain)
    return found[0] if found is not None and _OWNED.search(plain) is None else None


_LONGEST: Final = 600
_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")
_EMPTY: Final = listed("naming-nothing") | listed("true-of-any-call")  # they name nothing, or are true of any call
_SUCCESS: Final = listed("success")
_SUBJECTS: Final = word_set("something anything stuff things someone somebody whatever whoever")
"""Subjects that leave open what the sentence is about, whatever follows."""
_STATUS: Final = LatePattern(
    r"(?:the |an? |return(?:s|ed)? )*(?:http |status |code )*[12]\d\d(?: [a-z]+){0,2}"
    r"|(?:(?:the |an? )?success(?:ful)? message)(?: is (?:returned|sent|shown|displayed))?"
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|which|who|whom|whose|where|when|what|how|while|because|so|as|until|unless|whether)\b"
)  # beginnings of clauses: what is possible or tried there is not the outcome
_ADVERB: Final = (
    r"(?:maybe|perhaps|possibly|probably|hopefully|presumably|supposedly|potentially|ideally|sometimes|usually|normally"
    r"|generally|typically|likely|somehow|more or less|kind of|sort of)"
)
_BE: Final = r"(?:is|are|was|were|be|been|gets?|has|have|had|will|can|may|exists?)"
_HEDGE: Final = LatePattern(
    rf"^{_ADVERB}\b|\b{_BE} {_ADVERB}\b|\b{_ADVERB} {_BE}\b"
    r"|\b(?:might|could|should|would|ought to)(?: not)?(?: now| then)?"
    r" (?:be|have|get|exist|receive|see|appear|work|happen)\b"
    r"|\bmay(?: or may not|be| be| have been)\b"
    r"|\bif (?:all|everything|it|things?) (?:goes|go|went|works?|worked)\b|\bwith (?:some |any |a bit of )?luck\b"
    r"|\bone way or (?:an)?other\b|\bin (?:some|one) way\b|\bsome (?:kind|sort) of\b"
    r"|^(?:(?:it|this|that|the (?:outcome|result|response|answer|effect|rest)|what happens|everything|all) )?"
    r"(?:depends|depending|varies|differs)\b"
)
_AFTERTHOUGHT: Final = LatePattern(
    rf"\b{_ADVERB}$|\b(?:or|perhaps) not$"
    r"|\b(?:if|where|when|whenever|as far as) (?:at all )?(?:possible|feasible|appropriate|applicable)\b"
)
_ATTEMPT: Final = LatePattern(
    r"(?<!\ban )(?<!\bthe )(?<!\beach )(?<!\bevery )(?<!\bno )(?<!\bfurther )"
    r"\b(?:try|tries|trying|tried|attempt|attempts|attempting|attempted|aim|aims|aiming|hope|hopes|hoping|seek|seeks|strive"
    r"|strives|endeavou?rs?|intend|intends|plans|wants|wishes) to\b"
    r"|\b(?:is|are|was|were|be) (?:supposed|expected|intended|meant|likely|going|about|hoped|attempted) to\b"
    r"|\b(?:attempts?|efforts?|try) (?:is|are|was|were|has been|have been|will be|gets?) (?:made|undertaken|started)\b"
    r"|\bbest[ -]effort\b|\b(?:do|does|did|doing|try|tries) (?:its|our|their|the|my|his|her) best\b"
)


def weakness(outcome: str, method: str = "", things: Container[str] = ()) -> str | None:
    """Return why an outcome cannot be verified, or None; words of the path (`things`) are specific."""
    plain = " ".join(outcome[:_LONGEST].lower().replace("’", "'").split()).strip(" .!…\"'`")
    if not plain:
        return None
    if plain.endswith("?"):
        return "it is a question"
    words = [word.removesuffix("'s") for word in _WORD.findall(plain)]
    rest = [word for word in words if word in things or not (word in _EMPTY or (len(word) == 1 and word.isascii()))]
    if all(word.isdecimal() for word in rest) or _STATUS.fullmatch(plain):
        return "it is true of any call"
    clause = _CLAUSE.search(plain)
    main = plain[: clause.start()] if clause and clause.start() else plain
    hedge = _HEDGE.search(main) or _AFTERTHOUGHT.search(plain)
    if _ATTEMPT.search(main):
        return "it says what is tried, not what is true afterwards"
    if hedge:
        return f"{hedge[0].strip()!r} leaves open whether it happens"
    if words and words[0] in _SUBJECTS:
        return f"{words[0]!r} does not say what exists, has changed or is returned"
    if method and not _SUCCESS.isdisjoint(words) and all(_is_form(word, method.lower()) for word in rest):
        return "it only says that the method succeeded"
    return None


def _is_form(word: str, method: str) -> bool:
    """Return True if a word is the method as a verb or as a noun: book, booking, cancellation."""
    if word == method or any(lemma.verb == method for lemma in lemmas(word)):
        return True
    return len(method) > 3 and word.startswith(method.rstrip("ey")) and word.endswith(("ion", "ment", "al", "ings"))
