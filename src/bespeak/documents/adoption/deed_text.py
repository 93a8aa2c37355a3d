"""What the sentences of an upstream say that a call does, wherever they stand: "Saves the file", "is regenerated"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.verb_form import lemmas

STRONG: Final = frozenset(
    {
        *("delete", "remove", "erase", "overwrite", "regenerate", "reset", "revoke", "invalidate", "send", "resend"),
        *("charge", "refund", "restart", "reboot", "terminate", "kill", "consume", "install", "uninstall", "execute"),
        *(
            "trigger",
            "write",
            "transfer",
            "pay",
            "purchase",
            "deploy",
            "wipe",
            "purge",
            "destroy",
            "rotate",
            "dispatch",
        ),
        *("rewrite", "truncate", "drop", "disable", "deactivate", "suspend", "unsubscribe", "forward", "upload"),
    }
)
"""Verbs that say a change in any form, even where a noun is the subject: "the key is regenerated"."""
_PLAIN: Final = STRONG | {
    "create",
    "update",
    "insert",
    "append",
    "modify",
    "rename",
    "cancel",
    "submit",
    "publish",
    "start",
    "stop",
    "set",
}
"""Verbs that a GET does not say of itself if it only reads."""
EFFECTS: Final = _PLAIN | frozenset(
    {
        *(
            "save",
            "store",
            "create",
            "insert",
            "append",
            "update",
            "modify",
            "replace",
            "rename",
            "move",
            "post",
            "run",
        ),
        *(
            "publish",
            "push",
            "submit",
            "order",
            "book",
            "start",
            "stop",
            "commit",
            "merge",
            "cancel",
            "close",
            "archive",
        ),
        *("download", "alter", "mutate", "add", "set", "apply", "enable", "register", "launch", "schedule", "approve"),
        *("reject", "assign", "unassign", "clear", "empty", "format", "import", "migrate", "patch", "mark", "log"),
    }
)
"""Verbs by which a sentence about the call itself says that it does more than answer."""
_OF_FIELDS: Final = STRONG | {
    "run",
    "save",
    "publish",
    "cancel",
    "create",
    "update",
    "insert",
    "append",
    "replace",
    "modify",
}
"""Verbs that are hardly ever nouns in the text of a field."""
_SEEN: Final = 4_000
_MOST: Final = 60
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+|(?<=;)\s")
_MARK: Final = re.compile(r"^(?:[\W_]+|\d{1,2}[.)]\s+)+")
"""What stands before a line: a bullet, a number, an emoji, the sign of a heading."""
_LABEL: Final = re.compile(r"^[A-Z][\w ]{0,24}(?::\s+|\s+\|\s+)(?=\S)")
"""A label before a sentence: `Purpose: `, `Notion | `."""
_SUBJECT: Final = re.compile(
    r"(?:also|it|this|the|an?|and|then|will|can|may|might|both|automatically|immediately|calling|running|using"
    r"|invoking|tool|call"
    r"|endpoint|operation|method|request|function|action|command|server|which|api|resource|service|permanently|\w+ly"
    r"|\W)+",
    re.IGNORECASE,
)
"""Words before a verb whose subject is the call."""
_PASSIVE: Final = re.compile(
    r"(?<!can )(?<!could )(?<!may )(?<!must )(?<!should )(?<!to )\b(?:is|are|will be|gets|get|be)\s+(?:(?:also|then"
    r"|automatically|immediately|permanently|first|now|re)\s+)*(\w+)\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(r"\b(?:a|an|another)? ?new\b", re.IGNORECASE)
_MADE: Final = frozenset({"create", "generate", "issue", "open", "start", "register", "mint"})
_ITSELF: Final = re.compile(
    r"\b(?:this|these) (?:\w+ )?(?:endpoints?|methods?|operations?|apis?|parameters?|fields?|features?|propert(?:y"
    r"|ies)|values?|versions?"
    r"|functionality|resource|tool) (?:is|are|will be) (?:\w+ (?:and )?){0,4}?(?:deprecat|remov|replac|renam|mov"
    r"|disabl|delet|suspend)"
    r"|\b(?:deprecated|sunset|(?:future|next|later|this) (?:major )?(?:version|release))\b",
    re.IGNORECASE,
)
"""The end of an endpoint, not what it does: "This method will be removed"."""
_OTHERWISE: Final = re.compile(
    r"\b(?:by (?!this|the call|default)|every|daily|nightly|hourly|weekly|periodically|regularly|previously|currently"
    r"|already|not|never"
    r"|cannot|n't|only (?:if|when)|until|unless|(?:when|once|after|if|whether|which|that|who|where|before|during"
    r"|because) (?!this|true|set|called"
    r"|calling|reading|the (?:call|request|endpoint)|you call|enabled|specified|it))\b",
    re.IGNORECASE,
)
"""Words of a sentence about another time, another actor, a condition or nothing at all."""
_PURPOSE: Final = re.compile(
    r"\b(?:to|whether to|if true,?|will|and then|then|also)\s+(?:\w+ly )?(\w+)\b", re.IGNORECASE
)
_ASKED_FOR: Final = re.compile(r"\b(?:query|queries|search|filter|expression to match|select)\b", re.IGNORECASE)
_TOLD: Final = re.compile(
    r"\b(?:use|call|see|you|first|before|instead|must|should|please|avoid|note|via|with)\b|\w_\w|`", re.IGNORECASE
)
"""Signs that a command is addressed to the caller, or is about another tool."""


class Deed(NamedTuple):
    """A verb that changes something, and the words around it."""

    verb: str
    words: str


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text without bullets, numbers and labels before them."""
    for count, line in enumerate(_SENTENCE.split(text[:_SEEN])):
        bare = _LABEL.sub("", _MARK.sub("", line.strip())).strip()
        if count > _MOST:
            return
        if bare and not bare.endswith(":"):
            yield bare


def deeds(text: str, *, broad: bool) -> Iterator[Deed]:
    """Yield what a text says that the call does.

    `broad` counts what an honest GET also says, such as "is stored", and commands: "Write the result to the disk".
    """
    for sentence in sentences(text):
        deed = _active(sentence, broad=broad, commands=broad) or _passive(sentence, broad=broad)
        if deed is not None:
            yield deed


def field_deeds(text: str) -> Iterator[Deed]:
    """Yield what the text of a field says that the call does: "Whether to delete the file afterwards"."""
    for sentence in sentences(text):
        deed = _active(sentence, broad=False) or _passive(sentence, broad=False, conditional=True)
        deed = deed if deed is not None and deed.verb in _OF_FIELDS else None
        for found in _PURPOSE.finditer(sentence) if deed is None and not _ASKED_FOR.search(sentence) else ():
            verb = found[1].lower()
            if verb in _OF_FIELDS:
                deed = Deed(verb, found[0])
                break
        if deed is not None:
            yield deed


def _active(sentence: str, *, broad: bool, commands: bool = False) -> Deed | None:
    """Return the verb of "Saves the file" and "This tool also deletes it"; with `commands`, of "Delete it" too."""
    heads = head_verbs(sentence)
    runs = any(head.verb in _RUNNING for head in heads if head.kind == "light")
    for head in heads:
        if head.kind not in ("head", "coordinated", "meant") or head.verb not in (EFFECTS if broad else _PLAIN):
            continue
        if head.kind == "meant":  # "Runs the migration"
            if commands and runs and not _TOLD.search(sentence):
                return Deed(head.verb, _shown(sentence))
            continue
        word, before = sentence[head.start : head.end], sentence[: head.start]
        forms = {lemma.form for lemma in lemmas(word.lower())}
        subject = not before or _SUBJECT.fullmatch(before) is not None or head.kind == "coordinated"
        if "third" in forms and subject and not _NEGATED.search(before) and not sentence[head.end :].startswith(" of "):
            return Deed(head.verb, _shown(sentence[head.start :]))
        if "base" in forms and _MODAL.search(before) and subject:
            return Deed(head.verb, _shown(sentence[head.start :]))
        if commands and "base" in forms and not before and head.verb in _OF_FIELDS and not _TOLD.search(sentence):
            return Deed(head.verb, _shown(sentence))
    return None


_RUNNING: Final = frozenset({"run", "execute", "perform", "start", "launch", "initiate", "make"})
_MODAL: Final = re.compile(r"\b(?:will|can|may|might)\b", re.IGNORECASE)
_NEGATED: Final = re.compile(r"\b(?:not|never|n't)\b", re.IGNORECASE)


def _passive(sentence: str, *, broad: bool, conditional: bool = False) -> Deed | None:
    """Return the verb of "The key is regenerated" and "a new session is created".

    `conditional` means the text of a field, which says when: "If true, the file is deleted after reading".
    """
    if _ITSELF.search(sentence) or (_NEGATED if conditional else _OTHERWISE).search(sentence):
        return None
    for found in _PASSIVE.finditer(sentence):
        participles = [lemma.verb for lemma in lemmas(found[1].lower()) if lemma.form != "third"]
        made = any(verb in _MADE for verb in participles) and _NEW.search(sentence[: found.start()]) is not None
        verb = next((verb for verb in participles if verb in STRONG or made or (broad and verb in EFFECTS)), "")
        if verb:
            return Deed(verb, _shown(found[0]))
    return None


def _shown(words: str) -> str:
    return " ".join(words.split()[:3]).rstrip(".,;:")
