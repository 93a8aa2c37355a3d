"""The rules, one module for each concern; the letter of an id is the concern. `lint.passes` has all of them."""
