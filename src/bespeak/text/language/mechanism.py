"""Mechanism words: sentences about the inside of a system (tables, queues, requests) instead of a goal.

Storage words alone prove nothing: people book tables, keep records and share spreadsheets. A match needs a verb and a
noun of storage or transport, and no word that makes the thing somebody's own.
"""

from __future__ import annotations

import re
from typing import Final

from bespeak.text.language.late_pattern import LatePattern

_SEEN: Final = 1_000
"""Limit of characters that are searched."""

_NOUNS: Final = (
    *("table", "database", " db", "row", "tuple", "record", "sql", "stored proc", "cache", "redis", "datastore"),
    *("data store", "warehouse", "postgres", "mongo", "dynamo", "elasticsearch", "collection", "index", "kafka"),
    *("rabbitmq", "sqs", "sns", "nats", "pubsub", "pub/sub", "queue", " bus", "broker", "stream", "microservice"),
    *("micro-service", "backend", "back-end", "back end", "internal", "downstream", "upstream", "lambda", "rpc"),
    *("endpoint", "api", "request", "call", "payload", "serial", "marshal", "http", "status code", "crud", "statement"),
    *(" key", "job", "message", "task", "event"),
)
"""Nouns, one of which is in every match: a cheap test before the long pattern."""

_OWNED: Final = LatePattern(
    r"\b(?:(?:caller|user|customer|client|tenant|guest|agent|analyst)(?:['’]s|s['’])?|their|his|her|your|given|supplied"
    r"|provided|named|selected|chosen|spreadsheets?|sheets?|csv|notion|airtable|restaurants?|seats?|seating|dinner"
    r"|dining|poker|pool)(?!\w)"
)
"""Owner or kind of a thing: the thing itself is then the goal."""

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
