"""Zip archives: read within limits, and written with every untouched member byte for byte."""
