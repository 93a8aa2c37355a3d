"""The audit trail: records that cannot be changed unnoticed."""
