"""JSON Schema 2020-12: compile once, validate many, violations as data."""
