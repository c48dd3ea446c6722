"""What is installed works: programs built with pkg-config and with find_package, the shared library from Python."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, SOURCE, Skip, chat_model, main  # noqa: E402

BUILD = os.path.dirname(QUERN)
FOLDER = tempfile.TemporaryDirectory(prefix="quern-install-")
PREFIX = os.path.join(FOLDER.name, "prefix")
HELLO = os.path.join(SOURCE, "examples", "hello.c")


def run(*command, env=None):
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, **(env or {})})
    assert p.returncode == 0, f"{' '.join(command)[:200]}: {p.stdout[-1000:]} {p.stderr[-2000:]}"
    return p.stdout


def installed():
    """The installed tree, moved from where it was installed to; Skip for builds that ask for a runtime of their own."""
    if not os.path.exists(PREFIX):
        cache = os.path.join(BUILD, "CMakeCache.txt")
        if not os.path.exists(cache) or not os.path.exists(os.path.join(BUILD, "libquern.so")):
            raise Skip("no build to install from")
        with open(cache, encoding="utf-8") as f:
            s = f.read()
        if "QUERN_SANITIZE:STRING=\n" not in s or "QUERN_FUZZ:BOOL=ON" in s or os.environ.get("QUERN_EMULATED"):
            raise Skip("a build with sanitizers, or for another machine")
        first = os.path.join(FOLDER.name, "first")
        run("cmake", "--install", BUILD, "--prefix", first)
        os.rename(first, PREFIX)
    lib = [d for d, _, files in os.walk(PREFIX) if "libquern.so" in files]
    assert len(lib) == 1, lib
    return lib[0]


def ask(program, lib):
    missing = subprocess.run([program, "none.gguf", "x"], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": lib})
    assert missing.returncode == 1 and "none.gguf" in missing.stderr, missing
    told = subprocess.run([program, chat_model(), "Hello"], capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": lib})
    assert told.returncode == 0 and told.stdout.endswith(b"\n") and not told.stderr, told  # a random model may have nothing to say


def test_files():
    lib = installed()
    there = {os.path.relpath(os.path.join(d, f), PREFIX) for d, _, files in os.walk(PREFIX) for f in files}
    for name in ("include/quern.h", "bin/quern"):
        assert name in there, there
    assert [f for f in os.listdir(os.path.join(PREFIX, "include"))] == ["quern.h"], "the only header"
    names = set(os.listdir(lib))
    assert {"libquern.a", "libquern.so", "libquern.so.0", "pkgconfig", "cmake"} <= names, names
    assert "libquern.so.0" in run("readelf", "-d", os.path.join(lib, "libquern.so")), "the soname"
    assert run(os.path.join(PREFIX, "bin", "quern"), "version").strip()


def test_pkg_config():
    lib = installed()
    env = {"PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig")}
    cc = os.environ.get("CC", "cc")
    for static in ((), ("--static",)):
        flags = run("pkg-config", "--cflags", "--libs", *static, "quern", env=env).split()
        program = os.path.join(FOLDER.name, "hello" + "".join(static))
        if static:  # the archive, not the shared library that lies beside it
            flags = [f if f != "-lquern" else os.path.join(lib, "libquern.a") for f in flags]
        run(cc, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", HELLO, *flags, "-o", program)
        ask(program, lib)


def test_find_package():
    lib = installed()
    source, build = os.path.join(FOLDER.name, "user"), os.path.join(FOLDER.name, "user-build")
    os.makedirs(source)
    with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="ascii") as f:
        f.write("cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(quern 0.1 REQUIRED)\n"
                f"add_executable(shared {HELLO})\ntarget_link_libraries(shared PRIVATE quern::quern)\n"
                f"add_executable(static {HELLO})\ntarget_link_libraries(static PRIVATE quern::static)\n")
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}")
    run("cmake", "--build", build)
    for name in ("shared", "static"):
        ask(os.path.join(build, name), lib)


def test_python():
    """examples/quern.py in a process of its own: pieces, a stop by leaving the loop, errors, threads."""
    lib = installed()
    program = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import quern
with quern.Model(sys.argv[2], threads=1, context=200, parallel=4) as m:
    ids = m.tokenize("hello world")
    assert ids and all(isinstance(i, int) for i in ids)
    options = dict(max_tokens=12, temperature=0.0)
    text, result = m.answer([{"role": "user", "content": "Hi"}], **options)
    assert isinstance(text, str) and result.n_generated <= 12 and result.n_prompt > 1, (text, result.n_generated)
    again = "".join(m.stream([{"role": "user", "content": "Hi"}], **options))
    assert again == text, (again, text)
    got = {}
    def work(i):
        got[i] = m.answer([{"role": "user", "content": "Hi"}], **options)[0]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert set(got.values()) == {text} and len(got) == 6, got
    for piece in m.stream(ids, max_tokens=150):
        break  # leaving cancels the request
    for bad in (lambda: m.answer(ids * 300), lambda: m.answer(ids, temperature=-1.0), lambda: quern.Model("none.gguf")):
        try:
            bad()
        except quern.Error as e:
            assert str(e)
        else:
            raise AssertionError("no error")
print(quern.version())
"""
    told = run(sys.executable, "-c", program, os.path.join(SOURCE, "examples"), chat_model(), env={"QUERN_LIBRARY": os.path.join(lib, "libquern.so.0")})
    assert told.strip().startswith("0."), told


def test_python_structs():
    """The module's structs lie in memory as the header's do, or are their beginnings."""
    lib = installed()
    told = run(sys.executable, "-c", """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import quern
for c, py, whole in (("qn_generate_result", quern.Result, 1), ("qn_event", quern._Event, 1), ("qn_err", quern._Err, 1), ("qn_str", quern._Str, 1),
                     ("qn_prompt", quern._Prompt, 1), ("qn_engine_opts", quern._EngineOpts, 0), ("qn_sample_opts", quern._SampleOpts, 0),
                     ("qn_request_opts", quern._RequestOpts, 0)):
    for name, *_ in py._fields_:
        print(f"_Static_assert(offsetof({c}, {name}) == {getattr(py, name).offset}, \\"{c}.{name}\\");")
        print(f"_Static_assert(sizeof((({c} *)0)->{name}) == {getattr(py, name).size}, \\"{c}.{name}\\");")
    print(f"_Static_assert({ctypes.sizeof(py)} {'==' if whole else '<='} sizeof({c}), \\"{c}\\");")
""", os.path.join(SOURCE, "examples"), env={"QUERN_LIBRARY": os.path.join(lib, "libquern.so.0")})
    assert told.count("\n") > 100, told
    path = os.path.join(FOLDER.name, "layout.c")
    with open(path, "w", encoding="ascii") as f:
        f.write("#include <quern.h>\n" + told)
    run(os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only", "-I", os.path.join(PREFIX, "include"), path)


if __name__ == "__main__":
    main(globals())
