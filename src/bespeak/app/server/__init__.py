"""The composition root: assembly, configuration and life of a serving process."""
