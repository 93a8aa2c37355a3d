"""Typed access to the tables of a document: a wrong value is reported as a finding, never raised."""
