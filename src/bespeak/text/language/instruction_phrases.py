"""Phrases that tell a model what to do, and needles by which most honest texts are passed over."""

from __future__ import annotations

from typing import Final

from bespeak.text.language.late_pattern import LatePattern

_FEW: Final = r"(?:\S++ ){0,3}?"
_TOOL: Final = (
    r"(?:tools?|functions?|endpoints?|methods?|services?|apis?|servers?|actions?|providers?|helpers?|vendors?|plugins?)"
)
_NAMED: Final = r"[`'\"]?[a-z0-9]+(?:_[a-z0-9]+)+\b[`'\"]?(?! (?:param|field|argument|property|option|header))"
"""Name of a tool: get_quote."""
_PERSON: Final = (
    r"(?:users?|humans?|persons?|operator|owner|customer|anyone|anybody|nobody|no one|someone|them|us|they"
    r"|benutzer|nutzer|anwender|usuario|usuário|utilisateur|utente|пользовател\w+)"
)
_MODEL: Final = r"(?:assistants?|ai|llms?|language models?|chatbots?|copilot|claude|gpt|modell|agents?|models?)"
_SAID: Final = (
    r"(?:instructions?|prompts?|directives?|guidelines|guardrails|training|anweisungen|vorgaben|instrucciones|consignes"
    r"|istruzioni|instruções|инструкции|(?:(?<=your )|(?<=previous )|(?<=prior )|(?<=earlier )|(?<=safety )"
    r"|(?<=system ))"
    r"(?:rules|orders|constraints|policies|message))"
)
_BEFORE: Final = (
    r"(?:all|any|your|previous|prior|above|earlier|preceding|system|other|safety|original|initial|existing|former"
    r"|vorherigen|bisherigen|anteriores|previas|précédentes|precedenti|предыдущие)"
)
_DROP: Final = (
    r"(?:ignore|disregard|forget|override|bypass|neglect|overlook|set aside|ignoriere|missachte|vergiss|ignora|olvida"
    r"|ignorez|oublie|oubliez|dimentica|esqueça|игнорируй|забудь)"
)

STEMS: Final = (
    *("ignor", "disregard", "forget", "overrid", "bypass", "pretend", "you are", "act as", "from now", "<!--", "!["),
    *("missacht", "vergiss", "olvida", "oublie", "dimentica", "esque", "hinweis", "benutzer", "usuario", "utente"),
)
"""Parts of words, one of which is in most of the phrases, and in all of those of other languages in ASCII."""

PHRASES: Final = (
    (
        "tells a model to drop its instructions",
        LatePattern(
            rf"\b{_DROP} {_FEW}{_BEFORE} {_FEW}{_SAID}\b|\b{_DROP} {_FEW}{_SAID} (?:{_BEFORE}|before|given|you)\b"
            rf"|\b{_DROP} (?:everything|anything|all|what) {_FEW}(?:above|before|previously|earlier|you|told)\b"
            r"|\boverrides? (?:the |your |any |all )(?:system|developer) (?:prompt|message|instructions)"
            rf"|\bnew (?:system )?{_SAID}:|\b(?:your|previous|prior|earlier|system) {_FEW}{_SAID} (?:are|is) (?:now )?"
            r"(?:void|obsolete|superseded|cancell?ed|invalid|no longer|outdated|replaced)\b"
            r"|\b(?:priority|precedence) over (?:the |your |all |any )*(?:system|previous|other|developer|user)"
            rf" (?:messages?|{_SAID})|忽略.{{0,8}}(?:指令|指示|说明|提示)|無視して"
        ),
    ),
    (
        "gives a model another role",
        LatePattern(
            r"\byou are now (?:an?|the|in|my|no longer|free|dan|acting|going)\b|\bfrom (?:now|here"
            r"|this point) on(?:wards)?,?"
            r" (?:you|treat|act|obey|answer|respond)\b|\bpretend (?:to be|that you|you are|you're)\b"
            r"|\byour new (?:role|task|goal|job|instructions?)\b"
            r"|\bact (?:as|on behalf of) (?:an? |the |my |if you )?(?:[\w-]++ ){0,2}?(?:admin(?:istrator)?|root"
            r"|superuser"
            r"|assistant|ai|model|chatbot|developer|system|dan|were)\b"
            r"|\byou are an? (?:[\w-]++ ){0,3}?(?:assistant|ai|model|language model|chatbot|bot|agent)\b"
            r"|\b(?:enter|enable|activate) (?:developer|debug|god|admin|jailbreak) mode\b"
            r"|\b(?:note|message|notice|attention|reminder|hint|instructions?|hinweis|nota) (?:to|for|an|für|para|à)"
            rf" (?:the |all |any |das |ai |l')*{_MODEL} ?[:!]"
            r"|\b(?:system|admin(?:istrator)?|developer|operator|security|owner) (?:notice|override|directive|alert"
            r"|command)"
            r"s?\b.{0,40}?:|\b(?:important|critical|urgent|mandatory) (?:system|admin\w*|security|developer) (?:note"
            r"|instruction"
            r"|message|requirement)s?\b"
        ),
    ),
    (
        "keeps something from the user",
        LatePattern(
            r"\b(?:do not|don't|never|no need to) (?:ever )?(?:tell|inform|mention|reveal|disclose|show|admit|notify"
            r"|explain|say|let)"
            r" (?:(?:this|that|it|any|anything|of|about|to|these|them|steps?|instructions?|the|any|your|calls?|tools?"
            r"|note) ){0,4}?"
            rf"{_PERSON}\b(?! (?:again|by|with|who)\b)|\b(?:do not|don't|never) (?:mention|reveal|disclose"
            r"|admit) (?:that|this|these"
            r"|the existence|it|how|why)\b|\b(?:without (?:telling|informing)|hide (?:this|it"
            r"|\S+ \S+) from) the (?:user|human)\b|\bwithout the (?:user|human)(?:'s|’s)? (?:knowledge|knowing)\b"
            r"|不要告诉|别告诉|不要讓|不要让"
        ),
    ),
    (
        "pushes itself before other tools",
        LatePattern(
            rf"\b(?:results?|outputs?|answers?) of (?:every|each|all|any) other {_TOOL}\b|\b{_NAMED} is (?:compromised"
            rf"|malicious|unsafe|untrusted|insecure)\b|\b(?:all|the|any) other (?:\w+ ){{0,2}}{_TOOL} (?:are|is"
            r"|have been) (?:\w+ )?(?:malicious|unsafe|compromised|broken"
            rf"|insecure|retired|obsolete|untrusted|dangerous|unreliable|disabled)\b|\bother servers?'? {_TOOL} (?:are"
            r"|is) (?:\w+ )?(?:malicious|unsafe"
            rf"|compromised)|\buse only this (?:one|{_TOOL})[.!]?$|\bonly the {_TOOL} of this server\b|\b(?:always"
            r"|only) (?:use|call|invoke|choose|prefer|select|pick) this"
            rf" {_TOOL}\b(?! (?:to|when|if|for|with|after|once|on)\b)|\b(?:do not|don't|never) (?:use|call|invoke"
            r"|select|choose|consider) (?:any |the )?"
            rf"(?:other|another) {_TOOL}\b|\b(?:before|prior to|ahead of) (?:using |calling |invoking )?(?:any|all"
            rf"|every) other {_TOOL}\b"
        ),
    ),
    (
        "deceives the user",
        LatePattern(
            r"\bif (?:you are |you're |anybody |anyone |someone |they |the user )?(?:asked|questioned|wonders?"
            r"|asks?)\b.{0,60}\b(?:say|claim|pretend"
            r"|deny)\b"
        ),
    ),
    ("hides a comment", LatePattern(r"<!-- ?(?!\w+:)(?:[^\s>]++ ){4}")),
    (
        "sends data to an address",
        LatePattern(r"!\[[^\]]{0,80}\]\([^)\s]{0,300}[?&=/][^)\s]{0,100}[{\[<$]"),
    ),
)
"""Purposes that a single phrase shows, in lower case: an honest author has no reason to write it."""

NEEDLES: Final = (
    *("you", "act ", "instruct", "prompt", "this ", "other", "system", "assistant", "human", "person", "user", "model"),
    *("ignor", "disregard", "forget", "override", "bypass", "pretend", " mode", "conversation", "history", "message"),
    *("developer", "<|", "[inst", "[/inst", "<<", "important", "agent", "token", "secret", "password", "credential"),
    *("~/", "/etc", ".env", ".ssh", "id_rsa", "@", "://", "quiet", "silent", "no one", "nobody", "tool", "cookie"),
    *("environment", "env", "key", "consent", "approv", "permission", "confirm", "answer", "chat", "curl", "rsa"),
    *(
        "operator",
        "owner",
        "admin",
        "<!--",
        "priority",
        "priv",
        "further",
        "malicious",
        "compromise",
        "warning",
        "trace",
        "unaware",
        "notice",
        "invisible",
    ),
    *(
        "approve",
        "believe",
        "vendor",
        "elsewhere",
        "memory",
        "commands",
        ".pem",
        "every",
        "anybody",
        "anyone",
        "claim",
        "asked",
        "`",
        "contacts",
        "phone",
        "werkzeug",
        "mail",
        "rules",
        "code",
        "recipient",
        "destination",
        "payee",
        "utilisa",
        "usu",
    ),
)
"""Lower-case needles, one of which is in every match."""
