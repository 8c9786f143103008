"""Paragraphs of Office Open XML, whose text is in runs of equal formatting."""
