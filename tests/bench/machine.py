"""What the measuring scripts know of the machine: its name, its cores, how idle it is; and running a program on some of its cores."""
import ctypes
import mmap
import os
import platform
import signal
import subprocess
import tempfile
import time


class Died(Exception):
    """A program that did not end well; the text says how."""


class Run:
    """A program that has ended: its stdout as text, seconds it took, most bytes of memory it had resident, seconds of CPU."""

    def __init__(self, out, seconds, usage):
        self.out, self.seconds = out, seconds
        self.peak_bytes = usage.ru_maxrss * 1024
        self.cpu_seconds = usage.ru_utime + usage.ru_stime


def run(command, cores=None, timeout=900):
    """Run `command` on `cores` (None: wherever). Raises Died."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        try:
            p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None)
        except OSError as e:
            raise Died(str(e)) from e
        status, usage = wait(p.pid, began + timeout)
        seconds = time.monotonic() - began
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if p.returncode < 0:
            raise Died(f"{signal.Signals(-p.returncode).name} after {seconds:.1f} s")
        if p.returncode:
            last = err.read().decode(errors="replace").strip().split("\n")[-1]
            raise Died(f"exit code {p.returncode}: {last[:200]}")
        return Run(out.read().decode(errors="replace"), seconds, usage)


def wait(pid, until):
    """The status and the usage of a child; it is killed when its time is over."""
    nap = 0.001
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(nap)
        nap = min(nap * 2, 0.005)


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return set(next(line for line in f if line.startswith("flags")).split()[2:])
    except (OSError, StopIteration):
        return set()


def cores(n):
    """`n` of the processors that this process may use: one of each physical core first."""
    def core(cpu):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as f:
                return f.read()
        except OSError:
            return str(cpu)
    first, others, seen = [], [], set()
    for cpu in sorted(os.sched_getaffinity(0)):
        (others if core(cpu) in seen else first).append(cpu)
        seen.add(core(cpu))
    return (first + others)[:n]


def busy(seconds=1.0):
    """Shares of the processors' time, over `seconds`, in which something ran, and in which the host ran something else."""
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            v = [int(x) for x in f.readline().split()[1:9]]
        return sum(v), v[3] + v[4], v[7]
    try:
        before = read()
        time.sleep(seconds)
        total, idle, steal = (b - a for a, b in zip(before, read()))
    except (OSError, ValueError):
        return 0.0, 0.0
    return (total - idle - steal) / max(total, 1), steal / max(total, 1)


def cached(path):
    """Share of a file that is in the page cache; None where the system does not say."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as m:
            n = (len(m) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
            pages, first = (ctypes.c_ubyte * n)(), (ctypes.c_char * 1).from_buffer(m)
            bad = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(m)), pages)
            del first
            return None if bad else sum(p & 1 for p in bytes(pages)) / n
    except (OSError, AttributeError, ValueError):
        return None


def warm_up(path):
    """Read a file into the page cache."""
    with open(path, "rb", buffering=0) as f:
        while f.read(1 << 24):
            pass


def cool_down(path):
    """Drop a file from the page cache, after it was read: so that what lies below, a host's cache, is the same for everybody. Pages that a
    program has mapped stay."""
    warm_up(path)
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
