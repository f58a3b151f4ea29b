"""Builds the running parts from settings; the one room that sees every other."""
