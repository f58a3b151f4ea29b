"""CLAIM, SUPERVISE, SETTLE. The supervisor process; never runs user code."""
