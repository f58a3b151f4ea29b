"""Figures beside peers: `python -m bench` (see README.md). Ratios within one run, never absolute claims."""
