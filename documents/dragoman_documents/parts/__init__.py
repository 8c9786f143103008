"""Large files in parts that are documents of their own."""
