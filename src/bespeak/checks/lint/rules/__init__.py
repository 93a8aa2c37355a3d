"""Rules, one module per topic; the letter of an id is the topic. `lint.passes` lists all of them."""
