"""The judgement shared by all importers: verb, path, impact and sentences of a candidate, with flagged guesses."""
