"""Subtitles: SRT, WebVTT and TTML."""
