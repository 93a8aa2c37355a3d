"""The normative rules, one family a module."""
