"""Y820-Y822, Y890-Y894: rules for the configuration of a server and of its HTTP face."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

INCOMPLETE_IDENTITY: Final = Rule(
    "Y820",
    "incomplete-identity",
    "SHOULD",
    "reading files",
    "The identity of the server is not given in full.",
    why="Every manifest names who runs the server and whom to ask. Write operator and contact.",
    bad='[server]\nserver_id = "rooms.example"\n',
    good=('[server]\nserver_id = "rooms.example"\noperator = "Acme Rooms"\ncontact = "mailto:ops@rooms.example"\n'),
    notation="toml",
)
NO_EFFECT: Final = Rule(
    "Y821",
    "setting-without-effect",
    "SHOULD",
    "reading files",
    "This server does not act on a setting.",
    why="Whoever wrote it may count on what it does elsewhere. Remove it, or see to it by other means.",
    bad="[policies]\nnegotiable = true\n",
    good="[policies]\nsynthesis_enabled = false\n",
    notation="toml",
)
CONTRADICTION: Final = Rule(
    "Y822",
    "contradicting-settings",
    "MUST",
    "reading files",
    "Settings contradict each other.",
    why=(
        "The server would have to choose between them, and may choose wrongly. Keep one of them, or complete the pair."
    ),
    bad='[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\n',
    good='[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\nkey = "key.pem"\n',
    notation="toml",
)
UNKNOWN_CATEGORY: Final = Rule(
    "Y890",
    "unknown-service-category",
    "MUST",
    "reading files",
    "A category of the service is none of those there are.",
    why=(
        "Discovery systems sort services by a closed list of categories, and the schema of /.well-known/ai refuses "
        "every other. Choose the nearest one, or none."
    ),
    bad='[http]\ncategory = ["hotels"]\n',
    good='[http]\ncategory = ["travel"]\n',
    notation="toml",
)
WEB_ADDRESS: Final = Rule(
    "Y891",
    "no-web-address",
    "MUST",
    "reading files",
    "A setting of the HTTP face is no address of the web.",
    why=(
        "What stands in a published document has to be found by whoever reads it, and a relative or mistyped "
        "address leads nowhere. Write the whole address, with its scheme and host."
    ),
    bad='[http]\nurl = "rooms.example"\n',
    good='[http]\nurl = "https://rooms.example"\n',
    notation="toml",
)
UNLIMITED_ON_THE_WEB: Final = Rule(
    "Y892",
    "unlimited-on-the-web",
    "SHOULD",
    "reading files",
    "Endpoints are published on the web, and nothing limits how often they are called.",
    why=(
        "Whoever lists endpoints for all agents of the web has to limit each of them, because agents do not have to "
        "keep to what a document asks for. The server says so when it starts with an HTTP face. Limit what one "
        "agent and what one address may call; /.well-known/ai then tells the tighter of the two."
    ),
    bad='[listen]\nhttp = "127.0.0.1:8080"\n',
    good='[listen]\nhttp = "127.0.0.1:8080"\n\n[limits.rate]\nagent = "600/min"\naddress = "600/min"\n',
    notation="toml",
)
PROXY_ADDRESS: Final = Rule(
    "Y893",
    "no-network-address",
    "MUST",
    "reading files",
    "A trusted proxy is no address and no network.",
    why=(
        "A proxy is known by the address it calls from, so that a name, or a network with bits behind its length, "
        "is never met and everybody behind the proxy counts as one. Name each proxy, or the network they alone are "
        "in: whoever is trusted says where a call comes from."
    ),
    bad='[http]\ntrusted_proxies = ["proxy.example"]\n',
    good='[http]\ntrusted_proxies = ["10.0.0.7", "10.1.0.0/16"]\n',
    notation="toml",
)
LANGUAGE_TAG: Final = Rule(
    "Y894",
    "no-language-tag",
    "MUST",
    "reading files",
    "A language of the service is no tag of BCP 47.",
    why=(
        "Discovery documents tell the languages of a service by tags; a name of a language is left out of them. "
        "Write the tag, with a region or a script behind it where that matters."
    ),
    bad='[http]\nlanguage = ["English"]\n',
    good='[http]\nlanguage = ["en", "de-CH"]\n',
    notation="toml",
)

RULES: Final = (
    INCOMPLETE_IDENTITY,
    NO_EFFECT,
    CONTRADICTION,
    UNKNOWN_CATEGORY,
    WEB_ADDRESS,
    UNLIMITED_ON_THE_WEB,
    PROXY_ADDRESS,
    LANGUAGE_TAG,
)
