"""The rules of CONTRIBUTING.md that a program can check: over the sources, and over what the build made of them."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, SOURCE, Skip, main  # noqa: E402

BUILD = os.path.dirname(QUERN)
LIBRARY = ("src", "quant", "simd", "models")
MAX_FILE, MAX_LINE = 800, 160
MAX_FUNCTION = {"simd": 250, "tests": 100}  # lines; everywhere else 60


# ---- sources ----

def sources(*tops, ext=(".c", ".h")):
    """Paths, relative to the project, of files below the folders `tops`."""
    for top in tops:
        for folder, dirs, files in os.walk(os.path.join(SOURCE, top)):
            dirs[:] = sorted(d for d in dirs if d not in ("data", "corpus", "__pycache__"))
            for f in sorted(files):
                if f.endswith(ext):
                    yield os.path.relpath(os.path.join(folder, f), SOURCE)


def text(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code(path):
    """The file with comments and the insides of strings blanked out, lines kept."""
    def blank(m):
        s = m.group(0)
        return '""' if s[0] == '"' else "' '" if s[0] == "'" else "\n" * s.count("\n") or " "
    return TOKEN.sub(blank, text(path))


def expect_none(wrong, rule):
    assert not wrong, f"{rule}\n    " + "\n    ".join(wrong)


def test_file_length():
    wrong = [f"{p}: {n} lines" for p in sources(*LIBRARY, "tools", "tests", ext=(".c", ".h", ".py"))
             if (n := text(p).count("\n")) >= MAX_FILE]
    expect_none(wrong, f"files have fewer than {MAX_FILE} lines")


def test_lines():
    wrong = []
    for p in sources(*LIBRARY, "tools", "tests"):
        s = text(p)
        if not s.endswith("\n"):
            wrong.append(f"{p}: no newline at the end")
        for i, line in enumerate(s.split("\n"), 1):
            if len(line) > MAX_LINE:
                wrong.append(f"{p}:{i}: {len(line)} columns")
            if "\t" in line or line != line.rstrip():
                wrong.append(f"{p}:{i}: a tab, or white space at the end")
    expect_none(wrong, f"lines have at most {MAX_LINE} columns, no tabs, no white space at their end")


def test_unique_names():
    names = collections.defaultdict(list)
    for p in sources(*LIBRARY, "tools", "tests", ext=(".c", ".h", ".py")):
        names[os.path.basename(p)].append(p)
    expect_none([" ".join(v) for v in names.values() if len(v) > 1], "a file name is unique in the tree")


def functions(path):
    """(line, name, number of lines) of each function: its brace opens and closes in column 0."""
    lines = code(path).split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 8):start])
            names = re.findall(r"(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$", head)
            yield start + 1, names[-1] if names else "?", i - start - 1
            start = None


def test_function_length():
    wrong = []
    for p in sources(*LIBRARY, "tools", "tests"):
        limit = MAX_FUNCTION.get(p.split(os.sep)[0], 60)
        wrong += [f"{p}:{line}: {name} has {n} lines" for line, name, n in functions(p) if n >= limit and name != "main"]
    expect_none(wrong, f"functions have fewer than 60 lines, {MAX_FUNCTION}")


# The library never ends the program, prints or reads the environment.
FORBIDDEN_CALL = re.compile(r"(?<![\w.>])(_?[eE]xit|quick_exit|abort|v?printf|vfprintf|fprintf|puts|fputs|putchar|perror|(?:secure_)?getenv|"
                            r"setenv|putenv|system|signal|setlocale)\s*\(")
# ... and does not use what keeps state behind the caller's back, or follows the host program's locale.
FORBIDDEN_STATE = re.compile(r"(?<![\w.>])(strtok|s?rand|random|localtime|gmtime|asctime|ctime|strerror_l|gets|strcpy|strcat|sprintf|atoi|atof|"
                             r"alloca)\s*\(")


def test_forbidden_calls():
    wrong = []
    for p in sources(*LIBRARY):
        for i, line in enumerate(code(p).split("\n"), 1):
            for m in (*FORBIDDEN_CALL.finditer(line), *FORBIDDEN_STATE.finditer(line)):
                wrong.append(f"{p}:{i}: {m.group(1)}()")
    expect_none(wrong, "the library does not call these")


# Who may include whom: longest folder that matches. docs/architecture.md has the picture.
BASE = ("src/base/", "src/quern.h")
MAY_INCLUDE = {
    "src/base": BASE,
    "quant": ("quant/", *BASE),
    "simd": ("simd/", "quant/", *BASE),
    "src/format": ("src/format/", "quant/", *BASE),
    "src/token": ("src/token/", "src/format/", *BASE),
    "src/chat": ("src/chat/", *BASE),
    "src/sample": ("src/sample/", *BASE),
    "src/kv": ("src/kv/", *BASE),
    "src/ops": ("src/ops/", "src/kv/", "simd/", "quant/", *BASE),
    "models": ("models/", "src/ops/", "src/kv/", "src/format/", "quant/", *BASE),
    "src/run": ("src/run/", "models/", "src/ops/", "src/kv/", "src/token/", "src/chat/", "src/sample/", "src/format/", "simd/", "quant/", *BASE),
    "src/convert": ("src/convert/", "src/run/", "models/", "src/ops/", "src/token/", "src/format/", "simd/", "quant/", *BASE),
    "src": ("src/", "models/", "simd/", "quant/"),
}


def test_include_directions():
    wrong = []
    for p in sources(*LIBRARY):
        folder = os.path.dirname(p)
        rule = max((k for k in MAY_INCLUDE if folder == k or folder.startswith(k + "/")), key=len, default=None)
        if rule is None:
            wrong.append(f"{p}: {folder} has no rule of its own: give it one here and in docs/architecture.md")
            continue
        for inc in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(p), re.M):
            if not inc.endswith("_list.inc") and not inc.startswith(MAY_INCLUDE[rule]):
                wrong.append(f"{p} includes {inc}")
    expect_none(wrong, "includes point one way")


def test_tools_include_the_public_header_alone():
    headers = {os.path.basename(p) for p in sources("tools", ext=(".h",))} | {"quern.h"}
    wrong = []
    for p in sources("tools"):
        for inc in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(p), re.M):
            if os.path.basename(inc) not in headers and not inc.endswith("_list.inc"):
                wrong.append(f"{p} includes {inc}")
    expect_none(wrong, "tools include quern.h and their own headers")


def test_include_guards():
    wrong = [p for p in sources(*LIBRARY, "tools", ext=(".h",))
             if not re.search(r"#ifndef (\w+)\n#define \1\b", text(p))]
    expect_none(wrong, "headers have include guards")


def test_build_options():
    s = "\n".join(text(p) for p in ("CMakeLists.txt", "tests/CMakeLists.txt"))
    options = re.findall(r"^\s*option\((\w+)", s, re.M) + re.findall(r"^\s*set\((QUERN_\w+)[^)]*\bCACHE\b", s, re.M)
    assert len(options) <= 8, f"at most eight build options, there are {len(options)}: {options}"
    every = s + "".join(text(p) for p in sources("simd", ext=(".cmake",)))
    expect_none([f for f in ("-ffast-math", "-march=native", "-Ofast", "-funsafe-math") if re.search(rf"^[^#\n]*{f}", every, re.M)],
                "flags that change results or the machine the build is for")


def test_fuzz_corpora():
    wrong = []
    for p in sources("tests/fuzz", ext=(".c",)):
        name = os.path.basename(p)[len("fuzz_"):-len(".c")]
        folder = os.path.join(SOURCE, "tests", "fuzz", "corpus", name)
        if name != "main" and not (os.path.isdir(folder) and os.listdir(folder)):
            wrong.append(f"{p}: tests/fuzz/corpus/{name} is empty")
    expect_none(wrong, "a fuzz target has a corpus")


# ---- what the build made ----

def run(*command):
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
    assert p.returncode == 0, f"{' '.join(command)[:200]}: {p.stderr[:2000]}"
    return p.stdout


def built(name):
    path = os.path.join(BUILD, name)
    if not os.path.exists(path):
        raise Skip(f"{path} is not there")
    return path


def undefined_symbols():
    """Names that the library takes from elsewhere; Skip for a build with sanitizers or fuzzing, which adds its own."""
    out = run("nm", "-P", "-A", built("libquern.a"))
    rows = [(a.split("[")[-1].rstrip("]:"), n) for a, n, t, *_ in (r.split() for r in out.splitlines() if len(r.split()) > 2) if t == "U"]
    if any(re.match(r"__(asan|tsan|ubsan|sanitizer|msan)", n) for _, n in rows):
        raise Skip("a build with sanitizers")
    return rows


FORBIDDEN_SYMBOL = re.compile(r"^(_?_?[eE]xit|quick_exit|abort|__assert_fail|__assert|stdout|stderr|stdin|(__)?v?printf(_chk)?|puts|putchar|perror|"
                              r"(secure_)?getenv|setenv|putenv|system|signal|setlocale|__cxa_\w+|strtok|s?rand|localtime|gmtime)$")


def test_undefined_symbols():
    wrong = sorted({f"{o}: {n}" for o, n in undefined_symbols() if FORBIDDEN_SYMBOL.match(n)})
    if any(n.endswith("__assert_fail") for n in wrong):
        cache = text(os.path.join(BUILD, "CMakeCache.txt"))
        if not re.search(r"CMAKE_BUILD_TYPE:\w+=(Release|RelWithDebInfo|MinSizeRel)", cache):
            wrong = [n for n in wrong if not n.endswith("__assert_fail")]  # a debug build keeps its asserts
    expect_none(wrong, "the library neither ends the program, nor prints, nor reads the environment")


def test_no_mutable_globals():
    undefined_symbols()  # for its Skip
    wrong = []
    for line in run("objdump", "-t", built("libquern.a")).splitlines():
        m = re.match(r"^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+) (?:\.hidden )?(\S+)$", line)
        if m and int(m.group(2), 16) and re.match(r"^(\.data(?!\.rel\.ro)|\.bss|\.tdata|\.tbss|\*COM\*)", m.group(1)):
            wrong.append(f"{m.group(3)} in {m.group(1)}")
    expect_none(wrong, "the library keeps no mutable globals")


def test_needed_libraries():
    undefined_symbols()
    needed = re.findall(r"NEEDED.*\[(.+?)\]", run("readelf", "-d", built("libquern.so")))
    wrong = [n for n in needed if not re.match(r"(libc|libm|libpthread|libutf8proc|libgcc_s|ld-linux[\w-]*|libc\.musl[\w-]*)\.so", n)]
    expect_none(wrong, "the library needs libc, libm, threads and utf8proc alone")


def public_functions():
    return set(re.findall(r"QN_API[^;]*?(\bqn_\w+)\s*\(", code("src/quern.h")))


def test_exported_symbols():
    undefined_symbols()
    out = run("nm", "-D", "-P", "--defined-only", built("libquern.so"))
    exported = {r.split()[0] for r in out.splitlines() if r.split()[1] not in "wWvV"}
    expect_none(sorted(exported - public_functions()), "the shared library exports what quern.h declares, and nothing else")
    expect_none(sorted(public_functions() - exported), "what quern.h declares is there")


# Vector instructions above x86-64-v1 (SSE2): everything VEX and EVEX (v...), SSE3 to SSE4.2, the bit manipulation sets. tzcnt is left out:
# compilers write `rep bsf` where either meaning does, and it is shown under that name.
ABOVE_BASELINE = re.compile(
    r"^(v(?!err|erw)\w+|popcnt|lzcnt|andn|bextr|bls\w+|bzhi|mulx|pdep|pext|rorx|s[ahl][rl]x|crc32\w*|movbe|f?addsubp[sd]|h(add|sub)p[sd]|"
    r"mov(ddup|shdup|sldup|ntdqa)|lddqu|ph(add|sub)\w+|pabs[bwd]|palignr|pshufb|psign[bwd]|pmaddubsw|pmulhrsw|p?blend\w+|round[sp][sd]|dpp[sd]|"
    r"extractps|insertps|pextr[bdq]|pinsr[bdq]|pm(ax|in)(s[bd]|u[wd])|pmov[sz]x\w+|pmul(ld|dq)|ptest|pcmp(eqq|gtq|[ei]str[im])|packusdw|mpsadbw|"
    r"phminposuw|t(ileload|dp)\w+)$")


def test_baseline_instructions():
    folder = built(os.path.join("CMakeFiles", "quern_objects.dir"))
    objects = [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.endswith(".o")]
    assert objects, f"no objects in {folder}"
    if "x86-64" not in run("objdump", "-f", objects[0]):
        raise Skip("not an x86-64 build")
    wrong = collections.Counter()
    current = ""
    for line in run("objdump", "-d", "--no-show-raw-insn", *objects).splitlines():
        if line.endswith("file format elf64-x86-64"):
            current = os.path.relpath(line.split(":")[0], folder)
        m = re.match(r"^\s+[0-9a-f]+:\t(?:(?:rep[nz]*|lock|data16|cs|bnd)\s+)*(\w+)", line)
        if m and ABOVE_BASELINE.match(m.group(1)):
            wrong[f"{current}: {m.group(1)}"] += 1
    expect_none([f"{k} ({n} times)" for k, n in sorted(wrong.items())], "objects of the baseline run on every x86-64 CPU")


# ---- the header in other programs ----

def compile_header(compiler, suffix, *flags):
    with tempfile.TemporaryDirectory(prefix="quern-style-") as folder:
        path = os.path.join(folder, "user" + suffix)
        with open(path, "w", encoding="ascii") as f:
            f.write('#include "quern.h"\n#include "quern.h"\nint main(void) { return QN_OK; }\n')
        run(compiler, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", os.path.join(SOURCE, "src"), path)


def test_header_c99():
    compile_header("cc", ".c", "-std=c99", "-pedantic-errors", "-Wstrict-prototypes")


def test_header_cpp():
    compile_header("c++", ".cpp", "-std=c++11")


def test_header_declares_what_it_names():
    """Every type and constant with the public prefix that the header's declarations use is declared in it."""
    s = code("src/quern.h")
    used = set(re.findall(r"\b(qn_\w+)\b", s))
    declared = public_functions() | set(re.findall(r"(?:struct|enum|union)\s+(qn_\w+)", s)) | set(re.findall(r"\}\s*(qn_\w+);", s))
    declared |= set(re.findall(r"\(\*(qn_\w+)\)", s))
    expect_none(sorted(used - declared), "names in quern.h without a declaration")


if __name__ == "__main__":
    main(globals())
