"""FLOW. What a job keeps between its attempts: steps, waits, children, dependencies, usage, partial results."""
