"""Plural forms: the rules of languages, and messages with one text per form."""
