"""A pair of generated ontologies in the shape of anatomies: thousands of classes, many synonyms, parts and wholes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

_ORGANS: Final = (
    "kidney renal, liver hepatic, heart cardiac, lung pulmonary, stomach gastric, oesophagus esophageal, spleen "
    "splenic, brain cerebral, bladder vesical, ovary ovarian, testis testicular, skin cutaneous, eye ocular, ear "
    "aural, nose nasal, tongue lingual, caecum cecal, colon colic, rectum rectal, uterus uterine, tibia tibial, femur "
    "femoral, humerus humeral, radius radial, ulna ulnar, rib costal, neck cervical, chest thoracic, loin lumbar, "
    "pancreas pancreatic, thymus thymic, bronchus bronchial, pharynx pharyngeal, larynx laryngeal, trachea tracheal, "
    "jaw mandibular, face facial, foot pedal, hand manual, tail caudal"
)
ORGANS: Final = tuple((noun, adjective) for noun, adjective in (pair.split() for pair in _ORGANS.split(", ")))
_HEADS: Final = (
    "artery, vein, nerve, muscle, epithelium, lymph node, wall, gland, tissue, mucosa, fibre, ganglion, capsule, "
    "cortex, ligament, smooth muscle, blood vessel, plexus"
)
HEADS: Final = tuple(_HEADS.split(", "))
SIDES: Final = ("", "", "left", "right", "anterior", "posterior", "superior", "inferior", "medial", "lateral", "deep")
NUMBERS: Final = ("first", "second", "third", "fourth")
ROMAN: Final = ("I", "II", "III", "IV")
AMERICAN: Final = {"oesophagus": "esophagus", "caecum": "cecum", "fibre": "fiber"}


def concepts(count: int, chance: random.Random) -> list[tuple[str, int, str, int]]:
    """Return concepts: a side, the number of an organ, a head, and a position or 0; each once."""
    found: dict[tuple[str, int, str, int], None] = {}
    while len(found) < count:
        position = chance.choice((0, 0, 0, 0, 1, 2, 3, 4))
        found[(chance.choice(SIDES), chance.randrange(len(ORGANS)), chance.choice(HEADS), position)] = None
    return list(found)


def declared_names() -> dict[str, str]:
    """Return the classes that both ontologies have, by the end of their IRIs."""
    return {word.replace(" ", "_"): word for word in (*HEADS, *(noun for noun, _ in ORGANS))}


def mouse_names(concept: tuple[str, int, str, int], chance: random.Random) -> list[str]:
    side, organ, head, position = concept
    noun, adjective = ORGANS[organ]
    first = noun if chance.random() < 0.3 else adjective
    names = [_join(side, first, head, str(position) if position else "")]
    if chance.random() < 0.15:
        names.append(_join(side, adjective if first == noun else noun, head, str(position) if position else ""))
    return names


def human_names(concept: tuple[str, int, str, int], chance: random.Random) -> list[str]:
    side, organ, head, position = concept
    noun, adjective = ORGANS[organ]
    noun = AMERICAN.get(noun, noun)
    head = AMERICAN.get(head, head)
    number = chance.choice((NUMBERS[position - 1], ROMAN[position - 1])) if position else ""
    shapes = (
        _join(side, adjective, head, number),
        _join(number, side, adjective, head),
        _join(side, head, "of the", noun, number),
        _join(side, adjective, _plural(head), number),
        _join(side, chance.choice(("proper", "common")), adjective, head, number),
        _join(side, _misspell(adjective, chance), head, number),
    )
    label = chance.choices(shapes, (5, 2, 3, 1, 1, 1))[0]
    names = [label.title().replace(" ", "_").replace("Of_The", "of_the")]
    names += [name for name in chance.sample(shapes[:4], chance.choice((0, 0, 1, 2))) if name != label]
    return names


def pair(count: int = 3_000, seed: int = 7) -> tuple[bytes, bytes, set[tuple[str, str]]]:
    """Return two documents in RDF/XML and their true mappings; a third of the concepts is in one of them only."""
    chance = random.Random(seed)
    all_ = concepts(count * 4 // 3, chance)
    left, right = all_[:count], all_[count // 3 :]
    numbers = {concept: place for place, concept in enumerate(all_)}
    reference = {
        (f"http://mouse.example#MA_{numbers[one]:07}", f"http://human.example#NCI_C{numbers[one]}")
        for one in set(left) & set(right)
    }
    mouse = _document(
        "http://mouse.example", ((f"MA_{numbers[one]:07}", mouse_names(one, chance), one) for one in left)
    )
    human = _document(
        "http://human.example", ((f"NCI_C{numbers[one]}", human_names(one, chance), one) for one in right)
    )
    return mouse, human, reference


def _document(base: str, classes: Iterator[tuple[str, list[str], tuple[str, int, str, int]]]) -> bytes:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"',
        ' xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#"',
        f' xml:base="{base}"><owl:Ontology rdf:about=""><owl:versionInfo>1.0</owl:versionInfo></owl:Ontology>',
    ]
    lines += [
        f'<owl:Class rdf:about="#{name}"><rdfs:label>{word}</rdfs:label></owl:Class>'
        for name, word in declared_names().items()
    ]
    number = 0
    for name, (label, *synonyms), concept in classes:
        head, organ = (part.replace(" ", "_") for part in (concept[2], ORGANS[concept[1]][0]))
        lines.append(
            f'<owl:Class rdf:about="#{name}"><rdfs:label>{escape(label)}</rdfs:label>'
            f'<rdfs:subClassOf rdf:resource="#{head}"/><rdfs:subClassOf><owl:Restriction>'
            f'<owl:onProperty rdf:resource="#part_of"/><owl:someValuesFrom rdf:resource="#{organ}"/>'
            f"</owl:Restriction></rdfs:subClassOf>"
        )
        for synonym in synonyms:
            number += 1
            lines.append(f'<oboInOwl:hasRelatedSynonym rdf:resource="#genid{number}"/>')
            lines.append("")
            synonym_node = (
                f'<rdf:Description rdf:about="#genid{number}">'
                '<rdf:type rdf:resource="http://www.geneontology.org/formats/oboInOwl#Synonym"/>'
                f"<rdfs:label>{escape(synonym)}</rdfs:label></rdf:Description>"
            )
            lines.insert(4, synonym_node)
        lines.append("</owl:Class>")
    return "\n".join([*lines, "</rdf:RDF>"]).encode()


def _join(*words: str) -> str:
    return " ".join(word for word in words if word)


def _plural(head: str) -> str:
    if head.endswith("y"):
        return f"{head[:-1]}ies"
    return f"{head}s" if head[-1] not in "sxa" else head


def _misspell(word: str, chance: random.Random) -> str:
    place = chance.randrange(3, len(word)) if len(word) > 4 else len(word)
    return word[:place] + word[place + 1 :] if place < len(word) else word
