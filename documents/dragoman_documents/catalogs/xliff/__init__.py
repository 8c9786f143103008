"""XLIFF 1.2 and 2.x."""
