"""SUBMIT. What callers may ask: checked, then one store call."""
