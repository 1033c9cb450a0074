"""What all tests share."""

import signal
from importlib.util import find_spec

from hypothesis import settings

from book._ext import committed

# How many examples Hypothesis tries; `pytest --hypothesis-profile more` tries more of them.
settings.register_profile("few", deadline=None, max_examples=40)
settings.register_profile("more", deadline=None, max_examples=300)
settings.load_profile("few")

# Under nohup, or in the background of a script, these are ignored, and so they would be by every
# process that a test starts and then stops.
for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# Chapters with real trainings are compared with their outputs only where what they need is there.
collect_ignore = [str(path) for path in committed.chapters()]
if find_spec("torch") is None or find_spec("opacus") is None:
    collect_ignore.append("oralib/trainings/_opacus.py")
# It runs in an environment of its own.
collect_ignore.append("book/tf_privacy.py")
