"""What README.md shows works: its commands exist, and its C example compiles, runs and reports a missing file."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, SOURCE, Skip, cached_model, main, quern  # noqa: E402

with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
    README = readme.read()


def test_commands_exist():
    commands = set(re.findall(r"^quern ([a-z]+) .*  ", README, re.M))
    assert len(commands) >= 7, f"the README shows few commands: {commands}"
    for c in sorted(commands):
        assert b"--help" in quern(c, "--help"), f"quern {c} --help"


def test_links_lead_somewhere():
    for name in re.findall(r"\]\(([^)#:]+)\)", README):
        assert os.path.exists(os.path.join(SOURCE, name)), f"README.md links to {name}"


def test_the_conversation_is_the_program_s():
    """Exact numerics: the same answers on every machine."""
    system, shown = re.search(r'^\$ build/quern chat --temp 0 -s "(.*?)"\n(.*?)^```', README, re.S | re.M).groups()
    turns = re.findall(r"^> (.*)\n(.*)\n", shown, re.M)
    assert len(turns) == 5, shown
    told = quern("chat", "-m", cached_model(), "--temp", "0", "--exact", "-s", system, stdin="".join(q + "\n" for q, _ in turns).encode())
    assert told.decode() == "".join(a + "\n" for _, a in turns), told.decode()


def test_c_example():
    cc = shutil.which(os.environ.get("CC", "cc"))
    library = os.path.join(os.path.dirname(QUERN), "libquern.a")
    if not cc or not os.path.exists(library):
        raise Skip("no compiler, or no libquern.a beside the program")
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "story.c"), os.path.join(folder, "story")
        with open(source, "w", encoding="utf-8") as f:
            f.write(re.search(r"```c\n(.*?)```", README, re.S).group(1))
        build = subprocess.run([cc, "-Wall", "-Wextra", "-Werror", "-I", os.path.join(SOURCE, "src"), source, library, "-lutf8proc", "-lm", "-pthread",
                                "-o", program], capture_output=True, text=True)
        if "sanitize" in build.stderr or "__asan" in build.stderr or "__ubsan" in build.stderr or "__tsan" in build.stderr:
            raise Skip("the library is built with sanitizers")
        assert build.returncode == 0, build.stderr
        missing = subprocess.run([program, os.path.join(folder, "none.gguf")], capture_output=True, text=True)
        assert "none.gguf" in missing.stderr and not missing.stdout, missing
        try:
            model = cached_model()
        except Skip:
            return
        told = subprocess.run([program, model], capture_output=True)
        assert told.returncode == 0 and len(told.stdout) > 20 and not told.stderr, told


if __name__ == "__main__":
    main(globals())
