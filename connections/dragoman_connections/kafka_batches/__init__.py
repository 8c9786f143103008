"""Repair of fetch responses that aiokafka cannot read; see docs/adr/0016."""
