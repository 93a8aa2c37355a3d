"""The function words, verbs and nouns by which the head verb of a sentence is found."""

from __future__ import annotations

from typing import Final

from bespeak.text.language.sentence import word_set

DETERMINERS: Final = word_set(
    "the a an this that these those all any each every some its their your his her our my one two multiple several "
    "many new existing specific single given certain current own another other no specified"
)
MODALS: Final = word_set("will can may must should shall could would might does do")
BEING: Final = word_set("is are was were be been being gets get")
SUBJECTS: Final = word_set(
    "endpoint endpoints operation method methods api apis call function service services resource route action command "
    "tool agent agents user users caller callers client clients system server webhook app application customer "
    "customers merchant admin administrator administrators party procedure interface feature step query request "
    "requester owner owners member members developer developers you we it they account i handler hook "
    "applications merchants apps capability skill entry controller"
)
LEADING: Final = word_set(
    "please then now also first bulk batch mass async asynchronous asynchronously sync hard soft force partial "
    "beta deprecated internal admin internally v1 v2 v3 v4 public private api experimental legacy new "
    "preview optionally either both one-click auto advanced simple rest"
)
JUMPS: Final = word_set(
    "allow enable let permit help use utilize call attempt try want need provide offer give serve able intend design "
    "exist require facilitate support make invoke employ wish aim expose start recommend"
)
PURPOSES: Final = word_set(
    "send submit post pass upload supply provide issue make query transmit request tell instruct ask"
)
"""Verbs that name the means; the purpose follows "to": sends an image to analyze it."""
ASKING_THAT: Final = word_set("allow enable let permit request ask cause require demand arrange")
"""Verbs whose object may be said in the passive: allows a file to be deleted, requests that a job be cancelled."""
THROUGH_A_NOUN: Final = word_set("make issue provide give offer start expose support")
MEANS: Final = word_set(
    "request requests call calls way ability means option possibility capability opportunity query command chance "
    "interface endpoint method api operation function service resource route facility mechanism tool this it action"
)
CLAUSES: Final = word_set("that which who whose where when if because so while unless until after before once")
PREPOSITIONS: Final = word_set(
    "of for to from with on in by at into onto about within under over per between via using as without through "
    "during against based across except and or"
)
BARE_NOUNS: Final = word_set(
    "details detail info list history status count summary overview statistics stats result schema collection preview "
    "by for of in from"
)
"""Words after which a possible noun at the start is a noun: "order details", "comment by id"."""

VERBS_FIRST: Final = word_set(
    "list search query check filter look download export import upload get view update delete create read find "
    "send change move start stop cancel transfer set add remove edit show fetch return reset release "
    "patch post put request"
)
"""Verbs that begin a summary far more often than the nouns of the same spelling."""
READ_NOUNS: Final = word_set(
    "details detail info information list lists history status count summary overview statistics stats results result "
    "data types type version versions report reports metadata description definition definitions representation "
    "schema collection listing catalog statistic feed index properties snapshot balance "
    "object specification configuration page name state share size time date number owner address inventory amount "
    "value log logs settings profile timeline"
)
"""Nouns that a phrase without a verb returns: "Details of an order"."""
PURPOSE: Final = word_set("purpose goal aim intent intention point idea")
"""Nouns whose sentence names the action after "is to": "The purpose of this service is to retrieve …"."""
USED: Final = word_set("used designed intended able meant responsible useful called")
"""Participles and adjectives before "to" and "for": is used to, is responsible for."""
