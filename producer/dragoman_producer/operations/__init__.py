"""Operations on an installation: topics, dead letters, and the audit of every record."""
