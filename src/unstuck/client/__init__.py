"""Client: the operations asked of a server, over HTTP.

`asking.py` decides what is sent, what is sent again and what an answer means. It does no I/O: whoever drives it sends
and waits, in functions or in coroutines. `transport.py` sends; no other file knows httpx2.
"""
