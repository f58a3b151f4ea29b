"""The shortest way from a function to a durable job.

unstuck worker examples.quickstart:app          # in one terminal
python -m examples.quickstart                   # in another
"""

from __future__ import annotations

import unstuck

app = unstuck.App()  # ./unstuck.db; or App("postgresql://…"); or UNSTUCK_DATABASE=…


@app.workflow(retries=3, timeout=60)
def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    job = greet.enqueue("world")
    print("accepted:", job.id)
    print(job.result(timeout=60))
