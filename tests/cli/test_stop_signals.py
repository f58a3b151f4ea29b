"""A signal may strike anywhere, also while a lock is held: what ends the demo and `unstuck dev` takes none."""

from __future__ import annotations

import subprocess
import sys
import textwrap

#: Rests as the demo does between two looks, and strikes once at each line that is executed meanwhile, those of the
#: standard library too: a handler that wants a lock which the line holds never comes back.
STRIKES = """
    import signal
    import sys
    from types import SimpleNamespace

    from unstuck.cli import demo
    from unstuck.cli.stop_signals import StopSignals

    struck = set()

    def strike(frame, event, argument):
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place not in struck:
            struck.add(place)
            signal.raise_signal(signal.SIGINT)
        return strike

    with StopSignals() as stop:
        stage = SimpleNamespace(
            stop=stop,
            seconds=None,
            companion=SimpleNamespace(check=lambda: None),
            trickle=SimpleNamespace(step=lambda: None),
            watcher=SimpleNamespace(look=lambda: SimpleNamespace(workers=[])),
        )
        looks = demo._looks(stage)
        next(looks)
        sys.settrace(strike)
        ended = next(looks, None)
        sys.settrace(None)
        assert ended is None and stop.asked, (ended, stop.asked)
    assert any("stop_signals" in file for file, _ in struck), struck
    print(len(struck), "places")
"""


def test_wherever_a_signal_strikes_the_demo_ends() -> None:
    script = textwrap.dedent(STRIKES)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    assert ran.stdout.endswith("places\n")
