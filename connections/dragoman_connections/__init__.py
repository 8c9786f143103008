"""What all programs share: the way to Kafka and Redis, settings, terminals, child processes."""
