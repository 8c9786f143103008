"""Codecs of document formats: bytes in, segments out; translations in, bytes back.

Pure: no files, no network, no clock. They see `dragoman_text` and parsers only.
"""
