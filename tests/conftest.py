"""What all tests share."""

import signal

# Under nohup, or in the background of a script, these are ignored, and so they would be by every
# process that a test starts and then stops.
for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
