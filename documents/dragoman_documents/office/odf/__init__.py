"""ODT, ODS and ODP."""
