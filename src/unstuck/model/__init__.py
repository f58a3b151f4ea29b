"""WHAT a job is. Pure: no I/O, no clock, no threads."""
