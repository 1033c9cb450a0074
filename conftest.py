"""What all tests share."""

import signal
from importlib.util import find_spec

from book._ext import stored_outputs

# Under nohup, or in the background of a script, these are ignored, and so they would be by every
# process that a test starts and then stops.
for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# Chapters with real trainings are compared with their outputs only where what they need is there.
collect_ignore = [str(path) for path in stored_outputs.chapters()]
if find_spec("torch") is None or find_spec("opacus") is None:
    collect_ignore.append("oralib/trainings/_opacus.py")
# It runs in an environment of its own.
collect_ignore.append("book/tf_privacy.py")
