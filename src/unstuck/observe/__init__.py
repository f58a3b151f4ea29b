"""OBSERVE. What happened, for people and machines."""
