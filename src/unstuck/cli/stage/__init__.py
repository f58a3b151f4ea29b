"""`unstuck demo`: a real worker on a real database, a trickle of work, and a window onto both."""
