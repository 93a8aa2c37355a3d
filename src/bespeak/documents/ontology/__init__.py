"""Ontologies as documents: bounded readers for Turtle, RDF/XML and JSON-LD, and the published forms of the core."""
