"""Define the command line: one module per command, without business logic."""
