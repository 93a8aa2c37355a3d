"""The judgement every importer shares: a candidate gets a verb, a path, an impact and sentences, each guess flagged."""
