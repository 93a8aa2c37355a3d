"""The gates of the dispatcher, in one ordered tuple; the first refusal wins."""
