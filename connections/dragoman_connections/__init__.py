"""How both sides reach Kafka and Redis: settings, TLS and SASL, topologies."""
