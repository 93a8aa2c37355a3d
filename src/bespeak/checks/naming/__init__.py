"""How much the names of endpoints help to find them: a measurement after that behind AGIS (section 12)."""
