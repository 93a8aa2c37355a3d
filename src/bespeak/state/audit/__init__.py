"""What happened, in records that cannot be changed unnoticed."""
