"""The worker between a Kafka topic of translation jobs and vLLM."""
