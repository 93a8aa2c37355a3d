"""Two small ontologies of universities written apart from each other: names in camel case or with underscores, no
labels, properties with domains and ranges; and the mappings that a person would make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

A: Final = "http://campus.example/a"
B: Final = "http://campus.example/b"


def _pairs(text: str) -> dict[str, str]:
    """Return a table that is written as `name other, name other`; the second word may be missing."""
    return {name: other for name, _, other in (part.partition(" ") for part in text.split(", "))}


# Class, and its parent.
_CLASSES_A: Final = _pairs(
    "Person, Student Person, PhDStudent Student, Lecturer Person, Dean Lecturer, ExaminationBoardMember Person, "
    "ExaminationBoard Organisation, Organisation, Faculty Organisation, University Organisation, Course, "
    "OptionalCourse Course, MandatoryCourse Course, Exam Event, OralExam Exam, WrittenExam Exam, Event, "
    "GraduationCeremony Event, Document, Thesis Document, MasterThesis Thesis, Certificate Document, Grade, Room, "
    "LectureHall Room, Registration, LateRegistration Registration, EarlyRegistration Registration, Scholarship, "
    "Review Document, Reviewer Lecturer"
)
_CLASSES_B: Final = _pairs(
    "Human, Person Human, Students Person, Doctoral_Student Students, University_Lecturer Person, Dean "
    "University_Lecturer, EB_Member Person, Examination_Board Organization, Organization, Faculty Organization, "
    "University Organization, Course, Course_Evaluation Document, Optional_Course Course, Examination Event, "
    "Oral_Examination Examination, Written_Examination Examination, Event, Ceremony Event, Document, Master_s_Thesis "
    "Document, Certificate_of_Attendance Document, Lecture_Hall Building_Part, Building_Part, Registration, "
    "Late_Registration Registration, Reviewing Event, Reviewer Person, Timetable Document, Programme"
)
# Property, domains, ranges, and its inverse.
_OBJECTS_A: Final = (
    ("teaches", ("Lecturer",), ("Course",), "taughtBy"),
    ("taughtBy", ("Course",), ("Lecturer",), ""),
    ("hasAuthor", ("Document",), ("Person",), "authorOf"),
    ("authorOf", ("Person",), ("Document",), ""),
    ("isMemberOf", ("Person",), ("Organisation",), ""),
    ("takesExam", ("Student",), ("Exam",), ""),
    ("takesPlaceIn", ("Event", "Course"), ("Room",), ""),
    ("supervises", ("Lecturer",), ("PhDStudent",), ""),
    ("belongsTo", ("Faculty",), ("University",), ""),
)
_OBJECTS_B: Final = (
    ("teaches_course", ("University_Lecturer",), ("Course",), "is_taught_by"),
    ("is_taught_by", ("Course",), ("University_Lecturer",), ""),
    ("has_an_author", ("Document",), ("Person",), ""),
    ("author", ("Person",), ("Document",), ""),
    ("member_of", ("Students", "University_Lecturer"), ("Organization",), ""),
    ("takes", ("Students",), ("Examination",), ""),
    ("belongs_to", ("Course",), ("Programme",), ""),
    ("evaluates", ("Students",), ("Course",), ""),
)
_DATA_A: Final = (
    ("name", ("Person",), "string"),
    ("hasEmail", ("Person",), "string"),
    ("dateOfBirth", ("Person",), "date"),
    ("credits", ("Course",), "integer"),
    ("title", ("Document",), "string"),
    ("capacity", ("Room",), "int"),
    ("startDate", ("Event",), "dateTime"),
    ("hasFirstName", ("Person",), "string"),
)
_DATA_B: Final = (
    ("has_a_name", ("Person",), "string"),
    ("has_an_e-mail", ("Person",), "string"),
    ("birth_date", ("Person",), "date"),
    ("number_of_credits", ("Course",), "positiveInteger"),
    ("document_title", ("Document",), "string"),
    ("end_date", ("Event",), "dateTime"),
    ("first_name", ("Person",), "string"),
    ("capacity", ("Course",), "int"),
)

REFERENCE: Final = _pairs(
    "Person Person, Student Students, PhDStudent Doctoral_Student, Lecturer University_Lecturer, Dean Dean, "
    "ExaminationBoardMember EB_Member, ExaminationBoard Examination_Board, Organisation Organization, Faculty Faculty, "
    "University University, Course Course, OptionalCourse Optional_Course, Exam Examination, OralExam "
    "Oral_Examination, WrittenExam Written_Examination, Event Event, GraduationCeremony Ceremony, Document Document, "
    "MasterThesis Master_s_Thesis, LectureHall Lecture_Hall, Registration Registration, LateRegistration "
    "Late_Registration, Reviewer Reviewer, teaches teaches_course, taughtBy is_taught_by, hasAuthor has_an_author, "
    "authorOf author, isMemberOf member_of, takesExam takes, name has_a_name, hasEmail has_an_e-mail, dateOfBirth "
    "birth_date, credits number_of_credits, title document_title, hasFirstName first_name"
)


def documents() -> tuple[bytes, bytes]:
    """Return the two ontologies in RDF/XML."""
    return _write(A, _CLASSES_A, _OBJECTS_A, _DATA_A), _write(B, _CLASSES_B, _OBJECTS_B, _DATA_B)


def reference() -> set[tuple[str, str]]:
    """Return the true mappings as pairs of IRIs."""
    return {(f"{A}#{one}", f"{B}#{other}") for one, other in REFERENCE.items()}


def _write(
    base: str,
    classes: Mapping[str, str],
    objects: Sequence[tuple[str, tuple[str, ...], tuple[str, ...], str]],
    data: Sequence[tuple[str, tuple[str, ...], str]],
) -> bytes:
    lines = [
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"',
        f' xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="{base}"><owl:Ontology rdf:about=""/>',
    ]
    for name, parent in classes.items():
        above = f'<rdfs:subClassOf rdf:resource="#{parent}"/>' if parent else ""
        lines.append(f'<owl:Class rdf:ID="{name}">{above}</owl:Class>')
    for name, domains, ranges, inverse in objects:
        other = f'<owl:inverseOf rdf:resource="#{inverse}"/>' if inverse else ""
        inside = _union("domain", domains) + _union("range", ranges) + other
        lines.append(f'<owl:ObjectProperty rdf:ID="{name}">{inside}</owl:ObjectProperty>')
    for name, domains, kind in data:
        range_ = f'<rdfs:range rdf:resource="http://www.w3.org/2001/XMLSchema#{kind}"/>'
        lines.append(
            f'<owl:DatatypeProperty rdf:ID="{name}">{_union("domain", domains)}{range_}</owl:DatatypeProperty>'
        )
    return "\n".join([*lines, "</rdf:RDF>"]).encode()


def _union(property_: str, names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f'<rdfs:{property_} rdf:resource="#{names[0]}"/>'
    inside = "".join(f'<owl:Class rdf:about="#{name}"/>' for name in names)
    union = f'<owl:unionOf rdf:parseType="Collection">{inside}</owl:unionOf>'
    return f"<rdfs:{property_}><owl:Class>{union}</owl:Class></rdfs:{property_}>"
