"""Runs over documents: read, planned, translated, written, reported."""
