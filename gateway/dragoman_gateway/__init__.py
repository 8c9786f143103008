"""The gateway: translation APIs that other programs already speak, in front of Kafka and Redis."""
