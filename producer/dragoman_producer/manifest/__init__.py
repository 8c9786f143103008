"""The manifest of a folder of translations."""
