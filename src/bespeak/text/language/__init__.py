"""English in contracts: verb forms, head verbs, operation classes; one small lexicon, no dependencies."""
