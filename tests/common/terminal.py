"""A program under a pseudo-terminal, as a person sees it."""
import os
import pty
import re
import select
import signal
import struct
import sys
import fcntl
import termios
import time

from support import QUERN


class Terminal:
    """`with Terminal("chat", "-m", model) as t: t.expect("> "); t.type("hello\\n")`. Everything the screen got is in `t.seen` (bytes)."""

    def __init__(self, *args, env=None, columns=100):
        self.seen = b""
        self.at = 0  # what expect has passed
        self.code = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.environ.update({"TERM": "xterm", **(env or {})})
                os.environ.setdefault("LC_ALL", "C.UTF-8")
                os.execv(QUERN, [QUERN, *map(str, args)])
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, seconds):
        """Take in what comes within the time. False at the end of output."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:  # Linux: the other side is closed
            got = b""
        self.seen += got
        return bool(got)

    def expect(self, what, seconds=60):
        """Wait for text (or a compiled pattern of bytes) after what was expected last; the match."""
        pattern = what if isinstance(what, re.Pattern) else re.compile(re.escape(what.encode()))
        end = time.monotonic() + seconds
        while not (m := pattern.search(self.seen, self.at)):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern.pattern!r} within {seconds} s after {self.seen[self.at:][-400:]!r}"
            if not self.read(left):
                assert pattern.search(self.seen, self.at), f"the program ended without {pattern.pattern!r}: {self.seen[-400:]!r}"
        self.at = m.end()
        return m

    def type(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def wait(self, seconds=60):
        """Read to the end; the exit code (negative: the signal)."""
        end = time.monotonic() + seconds
        while self.read(max(0.0, end - time.monotonic())):
            assert time.monotonic() < end, f"still running after {seconds} s: {self.seen[-400:]!r}"
        _, status = os.waitpid(self.pid, 0)
        self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return self.code


if __name__ == "__main__":  # a look at a screen: python3 terminal.py chat -m MODEL
    with Terminal(*sys.argv[1:]) as terminal:
        terminal.read(5)
        sys.stdout.buffer.write(terminal.seen)
