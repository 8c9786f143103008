"""Codecs of document formats: bytes in, segments out; translations in, bytes back.

No network, no clock, and no files but for the first bytes in `recognition`. They see
`dragoman_text` and parsers only.
"""
