"""Apps to look at and to play with; `unstuck demo` runs one of them."""
