"""The judgement shared by all importers: a candidate gets a verb, a path, an impact and sentences, with flagged
guesses.
"""
