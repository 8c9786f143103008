"""Which tasks keep an installation in order? Topics, dead letters and the audit of every record."""
