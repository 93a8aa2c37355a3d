"""Parsers of text into trees that know the place of each key and value."""
