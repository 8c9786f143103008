"""ICU messages with plurals and selects."""
