"""Durable jobs that never get stuck."""
