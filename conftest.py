"""What all tests share."""

import signal

from book._ext import committed

# Under nohup, or in the background of a script, these are ignored, and so they would be by every
# process that a test starts and then stops.
for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# Chapters with real trainings are compared with their outputs only where PyTorch is installed.
collect_ignore = []
if committed.is_missing():
    collect_ignore = [
        *(str(path) for path in committed.BOOK.glob("*.ipynb") if committed.needs_torch(path)),
        "oralib/trainings/_opacus.py",
    ]
