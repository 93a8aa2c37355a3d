"""Weak intents: sentences about the inside of a system, and outcomes that nobody can verify (AGIS 6.1).

People book tables and keep records, so a match needs a verb and a noun of storage, and nobody who owns the thing.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from bespeak.text.language.sentence import LatePattern, listed, word_set
from bespeak.text.language.verb_form import lemmas

_SEEN: Final = 1_000  # limit of characters that are searched
_NOUNS: Final = (
    *("table", "database", " db", "row", "tuple", "record", "sql", "stored proc", "cache", "redis", "datastore"),
    *("data store", "warehouse", "postgres", "mongo", "dynamo", "elasticsearch", "collection", "index", "kafka"),
    *("rabbitmq", "sqs", "sns", "nats", "pubsub", "pub/sub", "queue", " bus", "broker", "stream", "microservice"),
    *("micro-service", "backend", "back-end", "back end", "internal", "downstream", "upstream", "lambda", "rpc"),
    *("endpoint", "api", "request", "call", "payload", "serial", "marshal", "http", "status code", "crud", "statement"),
    *(" key", "job", "message", "task", "event"),
)  # nouns, one of which is in every match: a cheap test before the long pattern
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
    if any(start in seen for start in _STATEMENTS):
        statement = _STATEMENT.search(seen)
        if statement is not None:
            return statement[0]
    plain = " ".join(seen.lower().split())
    if not any(noun in plain for noun in _NOUNS):
        return None
    found = _INSIDE.search(plain)
    return found[0] if found is not None and _OWNED.search(plain) is None else None


_LONGEST: Final = 600
_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")
_SMALL: Final = listed("naming-nothing")  # words that name nothing by themselves
_GENERIC: Final = listed("true-of-any-call")  # words that are true of any call, or of none
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
    rest = [word for word in words if word in things or not _is_empty(word)]
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


def _is_empty(word: str) -> bool:
    return word in _SMALL or word in _GENERIC or (len(word) == 1 and word.isascii())


def _is_form(word: str, method: str) -> bool:
    """Return True if a word is the method as a verb or as a noun: book, booking, cancellation."""
    if word == method or any(lemma.verb == method for lemma in lemmas(word)):
        return True
    return len(method) > 3 and word.startswith(method.rstrip("ey")) and word.endswith(("ion", "ment", "al", "ings"))
