"""Codecs of document formats: bytes in, segments out; translations in, bytes back.

No network, no clock, and no files but for first bytes and configurations of sites in
`recognition` and `site_recognition`. They see `dragoman_text` and parsers only.
"""
