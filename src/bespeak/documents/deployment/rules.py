"""Y820-Y824, Y890-Y894: rules for the configuration of a server and its HTTP face."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_IDENTITY: Final = Rule(
    ("Y820", "incomplete-identity", "SHOULD", "reading files"),
    "The identity of the server is incomplete.",
    why="Every manifest names the operator of the server and a contact. Write operator and contact.",
    bad='[server]\nserver_id = "rooms.example"\n',
    good=('[server]\nserver_id = "rooms.example"\noperator = "Acme Rooms"\ncontact = "mailto:ops@rooms.example"\n'),
    notation="toml",
)
NO_EFFECT: Final = Rule(
    ("Y821", "setting-without-effect", "SHOULD", "reading files"),
    "A setting has no effect on this server.",
    why="Its author may rely on an effect that it has elsewhere. Remove it, or achieve the effect by other means.",
    bad="[policies]\nnegotiable = true\n",
    good="[policies]\nsynthesis_enabled = false\n",
    notation="toml",
)
CONTRADICTION: Final = Rule(
    ("Y822", "contradicting-settings", "MUST", "reading files"),
    "Settings contradict each other.",
    why=(
        "The server would have to choose between them, and could choose wrongly. Keep one of them, or complete the "
        "pair."
    ),
    bad='[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\n',
    good='[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\nkey = "key.pem"\n',
    notation="toml",
)
DATA_SET: Final = Rule(
    ("Y823", "unusable-data-set", "MUST", "AGIS 8.3"),
    "A data set cannot be used.",
    why=(
        "Agents negotiate endpoints over the data sets of a service. One whose declaration is incomplete, or whose "
        "source cannot be read when the server starts, would promise data that nobody can get."
    ),
    bad='[[data]]\nclass = "exchange-rates"\n',
    good='[[data]]\nclass = "exchange-rates"\nfile = "rates.csv"\n',
    notation="toml",
)
PROCEDURE: Final = Rule(
    ("Y824", "unusable-procedure", "MUST", "Tier 2 10.3"),
    "A procedure cannot be run.",
    why=(
        "RUN runs only procedures that the operator has registered. One without a function or steps, or whose function "
        "cannot be imported, would be offered and fail. Name a function, or write the steps."
    ),
    bad='[[procedures]]\nid = "quality-check"\n',
    good='[[procedures]]\nid = "quality-check"\nfunction = "quality:check"\n',
    notation="toml",
)
UNKNOWN_CATEGORY: Final = Rule(
    ("Y890", "unknown-service-category", "MUST", "reading files"),
    "A category of the service is not in the list of categories.",
    why=(
        "Discovery systems sort services by a fixed list of categories, and the schema of /.well-known/ai refuses any "
        "other. Choose the nearest one, or leave it out."
    ),
    bad='[http]\ncategory = ["hotels"]\n',
    good='[http]\ncategory = ["travel"]\n',
    notation="toml",
)
WEB_ADDRESS: Final = Rule(
    ("Y891", "no-web-address", "MUST", "reading files"),
    "A setting of the HTTP face is not a valid web address.",
    why=(
        "A published address must work for every reader; a relative or mistyped one does not. Write the whole address, "
        "with its scheme and host."
    ),
    bad='[http]\nurl = "rooms.example"\n',
    good='[http]\nurl = "https://rooms.example"\n',
    notation="toml",
)
UNLIMITED_ON_THE_WEB: Final = Rule(
    ("Y892", "unlimited-on-the-web", "SHOULD", "reading files"),
    "Endpoints are published on the web without a rate limit.",
    why=(
        "A service that lists endpoints for all agents of the web must limit each of them, because agents need not "
        "follow the limits that a document states. The server reports this when it starts with an HTTP face. Limit the "
        "calls per agent and per address; /.well-known/ai then states the lower limit of the two."
    ),
    bad='[listen]\nhttp = "127.0.0.1:8080"\n',
    good='[listen]\nhttp = "127.0.0.1:8080"\n\n[limits.rate]\nagent = "600/min"\naddress = "600/min"\n',
    notation="toml",
)
PROXY_ADDRESS: Final = Rule(
    ("Y893", "no-network-address", "MUST", "reading files"),
    "A trusted proxy is not a valid IP address or network.",
    why=(
        "A proxy is recognised by the address it connects from. A host name, or a network with host bits set, never "
        "matches, and all clients behind the proxy count as one. List each proxy, or a network that contains only "
        "proxies: a trusted proxy decides which client address is believed."
    ),
    bad='[http]\ntrusted_proxies = ["proxy.example"]\n',
    good='[http]\ntrusted_proxies = ["10.0.0.7", "10.1.0.0/16"]\n',
    notation="toml",
)
LANGUAGE_TAG: Final = Rule(
    ("Y894", "no-language-tag", "MUST", "reading files"),
    "A language of the service is not a valid BCP 47 tag.",
    why=(
        "Discovery documents give the languages of a service as tags, and omit names of languages. Write the tag, with "
        "a region or a script where that matters."
    ),
    bad='[http]\nlanguage = ["English"]\n',
    good='[http]\nlanguage = ["en", "de-CH"]\n',
    notation="toml",
)
