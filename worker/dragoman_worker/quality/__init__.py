"""Language detection, and the quality of translations."""
