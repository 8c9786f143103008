"""Formats of markup: Markdown, HTML, notebooks."""
