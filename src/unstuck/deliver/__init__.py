"""Webhooks out: who sends them, and the dialler that asks nobody but whom it has checked."""
