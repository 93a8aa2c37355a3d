"""English in contracts: verb forms, head verbs, operation classes; no dependency, one small lexicon."""
