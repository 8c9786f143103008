"""Tables and rows: CSV, TSV, JSONL."""
