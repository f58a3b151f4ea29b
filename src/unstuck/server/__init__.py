"""The server: every operation over HTTP, as `operations/routes.py` says, and nothing that is not an operation.

A request passes, in this order: `connections` (how many, how slow), `api` (which endpoint), `bodies` (how large, how
deep), and then, on a thread of `lanes`, `door` (who asks), `rates` (how often) and the endpoint's operation. What is
refused on the way is told by `problems`.
"""
