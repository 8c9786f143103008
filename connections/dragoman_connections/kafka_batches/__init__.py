"""Makes what a broker answers to a fetch readable for aiokafka; see docs/adr/0016."""
