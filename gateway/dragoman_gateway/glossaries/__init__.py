"""Glossaries that callers keep by DeepL's API: v2 with one pair of languages, v3 with several."""
