"""Processors that are not here, under qemu: older x86-64 ones, which must meet no instruction they lack, and 64-bit Arm; all with the same bytes.

Arm needs both builds, build/ (`sh tests/run`) and build-arm/ (`sh tests/arm`): whichever runs the test looks for the other one.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import support
from support import QUERN, SOURCE, Skip

EMULATED = bool(os.environ.get("QUERN_EMULATED"))
X86_CPUS = {"Nehalem": ["scalar"], "Haswell": ["scalar", "avx2"]}  # the levels that each must find
TINY = ["llama", "gemma3"]
WAYS = [("-t", "1"), ("-t", "3", "--chunk", "1"), ("-t", "2", "--chunk", "7")]
IDS = [1 + i * 7 % 300 for i in range(12)]
TEXT_IDS = [1, 504, 253, 260, 216]  # of the default model, which takes a while under emulation


def run(*command):
    p = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500)
    assert p.returncode == 0, f"exit code {p.returncode}: {' '.join(map(str, command))[:300]}\n{(p.stderr or p.stdout).decode('utf-8', 'replace')[-2000:]}"
    return p.stdout


def x86_only():
    """The command before a program, for each processor; Skip where it cannot run."""
    if EMULATED or os.uname().machine != "x86_64":
        raise Skip("the build is not for x86-64")
    if not shutil.which("qemu-x86_64"):
        raise Skip("qemu-x86_64 is missing (apt-get install qemu-user)")
    with open(QUERN, "rb") as f:
        if b"__asan_init" in f.read() or b"__tsan_init" in f.read():
            raise Skip("sanitizers do not run under qemu")
    return {cpu: ("nice", "-n", "15", "qemu-x86_64", "-cpu", cpu) for cpu in X86_CPUS}


def levels(program):
    for line in run(*program, "version").decode().splitlines():
        if line.startswith("levels:"):
            return line.split()[1:]
    raise AssertionError(f"{program} version lists no levels")


def logits(program, model, ids, *options):
    return run(*program, "logits", "-m", model, "--ids", ",".join(map(str, ids)), "--all", "--exact", "-o", "-", *options)


def tiny_models():
    if not support.ref("arch"):
        raise Skip("the reference models (refs/arch) are not here")
    return [support.ref("arch", name + ".gguf") for name in TINY]


def test_levels_of_older_processors():
    for cpu, emulate in x86_only().items():
        found = levels((*emulate, QUERN))
        lacks = [level for level in X86_CPUS[cpu] if level not in found]
        assert not lacks, f"{cpu} has no {lacks}"
        more = [level for level in found if level not in X86_CPUS[cpu]]
        assert not more, f"{cpu} is said to have {more}"


def test_kernels_on_older_processors():
    folder = os.path.join(os.path.dirname(QUERN), "tests")
    for emulate in x86_only().values():
        for name in ("test_kernels_vector", "test_kernels_pack"):
            run(*emulate, os.path.join(folder, name))
        for fmt in ("F16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K", "IQ4_XS", "MXFP4"):
            for level in levels((*emulate, QUERN)):
                for tokens in (1, 9):
                    run(*emulate, os.path.join(folder, "test_kernels_matmul"), "--count", level, fmt, tokens, 1, 256)


def test_answers_of_older_processors():
    for model in tiny_models():
        command = ("run", "-m", model, "-p", "Hello", "-n", 4, "--temp", 0, "-t", 2)
        want_text, want = run(QUERN, *command), logits((QUERN,), model, IDS)
        for cpu, emulate in x86_only().items():
            assert run(*emulate, QUERN, *command) == want_text, f"{model}: another answer on {cpu}"
            assert logits((*emulate, QUERN), model, IDS) == want, f"{model}: other logits on {cpu}"


def both_machines():
    """[(program, level)] of this build and of the one for the other machine."""
    other = os.path.join(SOURCE, *(("build", "quern") if EMULATED else ("build-arm", "quern-emulated")))
    if not os.path.exists(other):
        raise Skip(f"the other build is missing: {other} ('sh tests/run' and 'sh tests/arm' make them)")
    try:
        all_levels = [(program, level) for program in (QUERN, other) for level in levels(("nice", "-n", "15", program))]
    except OSError as e:
        raise Skip(f"the other build does not run: {e}") from e
    assert all_levels.count((QUERN, "scalar")) == 1 and all_levels.count((other, "scalar")) == 1
    return all_levels


def same(model, ids, ways):
    """`ways`: {name: arguments of logits}."""
    want = None
    for name, (program, options) in ways.items():
        got = logits(("nice", "-n", "15", program), model, ids, *options)
        assert got and len(got) % (4 * len(ids)) == 0, f"{name}: {len(got)} bytes of logits"
        want = want or got
        assert got == want, f"{os.path.basename(model)}: {name} differs from {next(iter(ways))}"


def test_levels_of_both_machines():
    machines = both_machines()
    for model in tiny_models():
        ways = {f"{os.path.basename(p)} --cpu {level}": (p, ("--cpu", level)) for p, level in machines}
        ways.update({f"{os.path.basename(p)} {' '.join(o)}": (p, o) for p, _ in machines for o in WAYS})
        same(model, IDS, ways)


def test_default_model_on_both_machines():
    machines = both_machines()
    same(support.cached_model(), TEXT_IDS, {f"{os.path.basename(p)} --cpu {level}": (p, ("--cpu", level)) for p, level in machines})


if __name__ == "__main__":
    support.main(globals())
