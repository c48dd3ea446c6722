"""Usage: every mistake is one line on stderr and exit code 2, nothing on stdout; every help is complete."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, main, quern  # noqa: E402

SAMPLING = "temp seed top-k top-p min-p typical top-n-sigma xtc-probability xtc-threshold dyn-temp-range dyn-temp-exponent repeat-penalty " \
    "frequency-penalty presence-penalty penalty-last-n dry-multiplier dry-base dry-allowed-length dry-last-n dry-breaker mirostat mirostat-tau " \
    "mirostat-eta logit-bias order show-order".split()
ENGINE = "model threads ctx chunk cpu exact".split()


def mistake(*args, says=None, code=2):
    got, out, err = quern(*args, code=None)
    what = f"quern {' '.join(args)}: exit code {got}, stdout {out[:200]!r}, stderr {err[:500]!r}"
    assert got == code and out == b"", what
    assert err.startswith("quern: ") and err.count("\n") == 1 and err.endswith("\n"), what
    if says:
        assert says in err, f"{says!r} is not in it: {what}"


def test_commands():
    mistake("nonsense", says="'nonsense'")
    mistake("help", "nonsense", says="'nonsense'")
    code, out, err = quern(code=None)
    assert code == 2 and out == b"" and "usage:" in err
    assert b"usage:" in quern("--help") and b"chat" in quern("help")
    assert re.fullmatch(rb"quern \d+\.\d+\.\d+\n", quern("--version"))


def test_every_help():
    for command in re.findall(r"^  (\w+) ", quern("--help").decode(), re.M):
        text = quern(command, "--help").decode()
        assert text.startswith(f"usage: quern {command}") and "--help" in text, text
        assert text == quern("help", command).decode()
        assert max(map(len, text.split("\n"))) <= 80, f"{command}: a line is wider than a terminal"
    for command, options in (("chat", ENGINE + SAMPLING + ["system", "stop", "stats"]),
                             ("run", ENGINE + SAMPLING + ["prompt", "file", "system", "raw", "max-tokens", "stop", "reverse-prompt", "ignore-end", "json", "stats"]),
                             ("bench", ENGINE + "prompt generate pg depth runs profile layers no-limits json csv".split()),
                             ("logits", ENGINE + ["ids", "all", "output"])):
        text = quern(command, "--help").decode()
        for name in options:
            assert len(re.findall(rf"--{name}\b(?!-)", text)) >= 1, f"{command}: --{name} is not in the help"


def test_help_names_the_samplers():
    """In the order that --order takes and --show-order tells, which is the default one."""
    order = quern("run", "--show-order", "-p", "x", "-m", "nonsense", code=None)[2].split()[1]
    told = re.search(r"all of ([\w, ]+)\)", re.sub(r"\s+", " ", quern("run", "--help").decode()))
    assert told and told[1].replace(", ", ";") == order, order


def test_unknown_and_incomplete():
    for command in ("chat", "run", "bench", "logits"):
        mistake(command, "--nonsense", says="--nonsense")
        mistake(command, "-@", says="-@")
        mistake(command, "-m", says="needs a value")
        mistake(command, "--model", "--threads", says="needs a value")
        mistake(command, "stray", says="stray", code=1 if command == "bench" else 2)  # bench takes it for a model
        mistake(command, "--exact=1", says="takes no value")
    mistake("run", "-r", "-e", says="'-r' needs a value (TEXT); one that looks like an option is written --reverse-prompt='-e'")
    mistake("run", "-p", "x", "--stop", "", says="--stop")
    mistake("chat", "--stop", "", says="--stop")


def test_numbers():
    for option, wrong in (("--threads", "0 -1 513 two 1.5 99999999999999999999"), ("--ctx", "0 -5 x"), ("--chunk", "0 4097 -1")):
        for command in ("chat", "run", "logits"):
            for value in wrong.split():
                mistake(command, f"{option}={value}", says=option)
    mistake("chat", "--ctx=0", says="--ctx takes a number from 1 on, not '0'")
    floats = {"temp": "-1 nan inf 1e7", "top-p": "-0.1 1.1", "min-p": "2", "typical": "1.5", "top-n-sigma": "-1", "xtc-probability": "1.01",
              "xtc-threshold": "-1", "repeat-penalty": "-1", "frequency-penalty": "nan", "presence-penalty": "1e9", "dry-multiplier": "-1",
              "dry-base": "0.5", "mirostat-tau": "-1", "mirostat-eta": "-1", "dyn-temp-range": "-1", "dyn-temp-exponent": "-1"}
    ints = {"top-k": "-1 2147483648 1.5", "penalty-last-n": "-2", "dry-allowed-length": "-1", "dry-last-n": "-2", "mirostat": "1 3", "seed": "-1 x"}
    for name, values in {**floats, **ints}.items():
        for value in values.split() + ["", "abc", "1x"]:
            mistake("run", "-p", "x", f"--{name}={value}", says=f"--{name}")
            mistake("chat", f"--{name}={value}", says=f"--{name}")


def test_limits_are_told_in_full():
    mistake("run", "-p", "x", "--temp", "1e7", says="takes 0 to 1000000")


def test_lists():
    for value in ("5", "x=1", "5=", "5=x", "-1=2", "5=nan", "5=inf", "5=1e300", "5=-1e300", "=1", "5=1,6=1", "99999999999=1"):
        mistake("run", "-p", "x", f"--logit-bias={value}", says="--logit-bias")
    for value in ("nonsense", "top_k;top_k", ";", "top_k;", "top_k;;top_p", "top_k,top_p", "Top_k"):
        mistake("chat", "--order", value, says="--order")
    many = [f"--logit-bias={i}=1" for i in range(65)]
    mistake("run", "-p", "x", *many, says="64 times")
    for value in ("1;2", "x", "-1", "1,", ",1", "1 2", "1e3", "99999999999", ""):
        mistake("logits", f"--ids={value}", "-o", "/dev/null", says="--ids")
    for option in ("-p", "-n", "-d", "-t"):
        for value in ("x", "1,,2", "1,", "1.5", "99999999999", ",".join(["1"] * 17)):
            mistake("bench", option, value, says=option)
    mistake("bench", "-p", "0", "-n", "0", says="nothing to measure")
    mistake("bench", "-r", "0", says="--runs")
    for value in ("5", "5,", "0,5", "5,0", "1,2,3", "x,1", "-1,2"):
        mistake("bench", f"--pg={value}", says="-pg")
    for value in ("", ",", "scalar,", "nonsense", "scalar,nonsense", ",".join(["scalar"] * 17), ",".join(["scalar"] * 99)):
        mistake("bench", f"--cpu={value}", says="--cpu")
    mistake("bench", *["x"] * 65, says="64 times")
    mistake("bench", *["x"] * 40, *["-m", "y"] * 30, says="64 models")


def test_combinations():
    mistake("run", "-p", "x", "-f", "y", says="exclude")
    mistake("run", "-p", "x", "--raw", "-s", "y", says="--raw")
    mistake("bench", "--json", "--csv", says="exclude")
    mistake("bench", "--layers", "--csv", says="--csv")
    mistake("logits", "-o", "x", says="--ids")
    mistake("logits", "--ids", "1", "-p", "x", "-o", "y", says="either")
    mistake("logits", "--ids", "1", says="-o")


def test_output_that_fails():
    """What is lost is told, also where it was only a help text."""
    for args in ("--help", "--version", "version", "run --help", "help chat"):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([QUERN, *args.split()], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        assert p.returncode == 1 and p.stderr.startswith(b"quern: cannot write to stdout") and p.stderr.count(b"\n") == 1, (args, p)
        p = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', QUERN, *args.split()], stderr=subprocess.PIPE, timeout=60, check=False)
        assert p.returncode == 1 and p.stderr.startswith(b"quern: cannot write to stdout"), (args, p)


def test_input_that_fails():
    for args in (["template", "--raw", "--jsonl"], ["run", "-m", "x", "-f", "/"]):
        with open("/dev/null", "wb") as wrong_way:
            p = subprocess.run([QUERN, *args], stdin=wrong_way, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        assert p.returncode == 1 and p.stdout == b"" and p.stderr.startswith(b"quern: ") and p.stderr.count(b"\n") == 1, (args, p)


def test_input_without_end():
    """It is given up at 1 GB, long before the machine has no memory left."""
    for args in (["template", "--raw", "--jsonl"], ["template", "-f", "/dev/zero", "-m", "x"]):
        with open("/dev/zero", "rb") as endless:
            p = subprocess.run([QUERN, *args], stdin=endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        assert p.returncode == 1 and p.stdout == b"" and p.stderr.startswith(b"quern: ") and p.stderr.count(b"\n") == 1, (args, p)


def test_level():
    mistake("run", "-p", "x", "--cpu", "nonsense", says="scalar")
    mistake("bench", "--cpu", "nonsense", says="scalar")


def test_no_model():
    """Exit code 1: nothing is wrong with how it was asked."""
    with tempfile.TemporaryDirectory(prefix="quern-") as empty:
        os.environ["QUERN_CACHE"] = empty
        mistake("run", "-p", "x", says="default model", code=1)
        mistake("chat", says="default model", code=1)
        mistake("bench", says="default model", code=1)
        mistake("run", "-m", "nonsense", "-p", "x", says="nonsense", code=1)
        mistake("run", "-m", "./nonsense.gguf", "-p", "x", says="nonsense.gguf", code=1)
        mistake("run", "-m", empty, "-p", "x", says=f"{empty} is a folder", code=1)
        mistake("run", "-f", os.path.join(empty, "absent"), says="absent", code=1)
        evil = os.path.join(empty, "x\n\x1b[31m.gguf")
        with open(evil, "w", encoding="utf-8") as f:
            f.write("no model")
        mistake("run", "-m", evil, "-p", "x", code=1)
        _, _, err = quern("run", "-m", evil, "-p", "x", code=None)
        assert "\x1b" not in err, err
        del os.environ["QUERN_CACHE"]


main(globals())
