"""Runs of formatted text in paragraphs of Office Open XML."""
