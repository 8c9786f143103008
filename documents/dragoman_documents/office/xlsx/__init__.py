"""XLSX."""
