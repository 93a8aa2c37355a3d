"""AGIS documents: structure, references, canonical form, and the model they declare."""
