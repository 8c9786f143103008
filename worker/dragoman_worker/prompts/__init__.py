"""Prompt profiles: how each model family is asked, and how its answers are cleaned."""
