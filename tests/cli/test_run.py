"""`quern run` and the chat in a pipe: stdout is the answer alone, the same bytes whatever the machine does, and the ends of every kind."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, Skip, chat_model, main, quern, ref, talking_model  # noqa: E402


def run(*options, prompt="ab", model=None, **more):
    return quern("run", "-m", model or chat_model(), "-p", prompt, *options, **more)


def as_json(*options, prompt="ab", model=None):
    return json.loads(run("--json", *options, prompt=prompt, model=model))


RAW = ("--raw", "-n", "24", "--ignore-end", "--seed", "7")


def test_stdout_is_the_answer():
    code, out, err = run(*RAW, code=None)
    o = as_json(*RAW)
    assert code == 0 and out.decode() == o["text"] and b"\x1b" not in out, (out, o)
    assert err == "", "nothing else is said"
    code, out2, err = run(*RAW, "--stats", "--show-order", code=None)
    assert out2 == out and "tokens/s" in err and "first token" in err and "top_k;typical_p" in err and "seed" in err, err


def test_context_above_the_trained_one_is_noted():
    code, out, err = run(*RAW, "-c", "20000", code=None)
    assert code == 0 and out == run(*RAW, code=None)[1], "the text is the same"
    assert err.startswith("quern: note: the model was trained with ") and err.count("\n") == 1, err


def test_json():
    o = as_json(*RAW, "-t", "2")
    assert o["n_generated"] == 24 == len(o["ids"]) and o["finish"] == "length" and o["seed"] == 7 and o["n_cached"] == 0, o
    assert o["n_prompt"] >= 1 and o["order"].startswith("penalties;dry;")
    assert o["timings"]["first_token_seconds"] >= o["timings"]["prompt_seconds"] > 0 and o["timings"]["tokens_per_second"] > 0


def test_same_bytes():
    for temp in ("0", "1.5"):
        options = (*RAW, "--temp", temp, "--exact", "--logit-bias", "5=1")
        prompt = "The quick brown fox jumps over the lazy dog. " * 3
        want = as_json(*options, prompt=prompt)
        for other in (("-t", "1"), ("-t", "2"), ("-t", "3"), ("--cpu", "scalar"), ("--chunk", "1"), ("--chunk", "16"), ("--chunk", "512"), ("-c", "200")):
            got = as_json(*options, *other, prompt=prompt)
            assert got["ids"] == want["ids"] and got["text"] == want["text"], other


def test_seeds():
    hot = ("--raw", "-n", "30", "--ignore-end", "--temp", "2", "--top-k", "0", "--top-p", "1", "--min-p", "0")
    unseeded = as_json(*hot)
    assert as_json(*hot, "--seed", unseeded["seed"])["ids"] == unseeded["ids"], "the seed that is told replays the run"
    assert len({tuple(as_json(*hot, "--seed", s)["ids"]) for s in range(1, 6)}) >= 2
    assert as_json(*RAW, "--temp", "1e-7")["ids"] == as_json(*RAW, "--temp", "0")["ids"]


def test_sources_of_the_prompt():
    text = "line one\nline two \u00fc"
    want = as_json(*RAW, prompt=text)
    with tempfile.NamedTemporaryFile() as f:
        f.write(text.encode())
        f.flush()
        model = ("-m", chat_model())
        for options, stdin in ((("-f", f.name), b""), (("-f", "-"), text.encode()), ((), text.encode())):
            got = json.loads(quern("run", *model, "--json", *RAW, *options, stdin=stdin))
            assert (got["ids"], got["n_prompt"]) == (want["ids"], want["n_prompt"]), options
    turn = ("-n", "5", "--temp", "0")
    want = as_json(*turn, prompt="hello")
    got = json.loads(quern("run", *model, "--json", *turn, stdin=b"hello\n"))
    assert got["n_prompt"] == want["n_prompt"], "a final newline is the editor's"
    assert as_json(*turn, "-s", "Be brief.", prompt="hello")["n_prompt"] != want["n_prompt"], "the system turn counts"


def test_odd_prompts():
    for stdin in (b"", b"\xff\xfe\x80", b"a\0b", b"\n" * 50, "\u202e\U0001f600".encode()):
        for options in ((), ("--raw",)):
            code, out, err = quern("run", "-m", chat_model(), "-n", "2", *options, stdin=stdin, code=None)
            assert code == 0 or (code == 1 and out == b"" and err.startswith("quern: ")), (stdin, options, code, err)


def test_the_template_of_a_family_is_told():
    """Once, and only where it is used."""
    for name, family in (("gemma3", "gemma family"), ("llama", "chatml")):
        model = ref("arch", f"{name}.gguf")
        if not model:
            raise Skip("the reference data are absent")
        told = [quern(*a, "-m", model, code=None) for a in (("run", "-p", "x", "-n", "1"), ("template", "-p", "x"), ("template",))]
        assert [t[0] for t in told] == [0, 0, 1], told
        assert all(t[2].count("no chat template") == 1 and t[2].count("\n") == 1 for t in told), told
        assert family in told[0][2] and family in told[1][2] and told[2][1] == b"", told
        assert quern("run", "--raw", "-p", "x", "-n", "1", "-m", model, code=None)[2] == "", "no template, nothing to tell"


def test_ends():
    text = as_json(*RAW, "--temp", "0")["text"]
    stop = text[3:6]
    at = text.index(stop)
    for option in ("--stop", "--reverse-prompt", "-r"):
        o = as_json(*RAW, "--temp", "0", option, "never at all", option, stop)
        assert o["text"] == text[:at] and o["finish"] == "stop" and o["stop"] == stop, o
    assert as_json("--raw", "-n", "1")["n_generated"] == 1
    full = as_json("--raw", "--ignore-end", "--ctx", "40")
    assert full["finish"] == "length" and full["n_prompt"] + full["n_generated"] == 41, full
    code, out, err = run("--raw", "--ctx", "8", prompt="word " * 50, code=None)
    assert code == 1 and out == b"" and "context" in err and "8" in err, err
    code, out, err = run("--raw", "-n", "1", "--logit-bias", "99999999=1", code=None)
    assert code == 1 and "bias" in err, err


def test_slide():
    options = ("--raw", "--ignore-end", "--ctx", "96", "-n", "200", "--temp", "0", "--slide")
    code, out, err = run(*options, "--json", prompt="one two three four", code=None)
    o = json.loads(out)
    assert code == 0 and o["n_generated"] == 200 and len(o["ids"]) == 200 and o["finish"] == "length", o
    m = re.search(r"(\d+) tokens have left it:\n(.+)", err, re.S)
    assert m and int(m.group(1)) >= 200 - 96, err
    code, out, again = run(*options, "--keep", "48", "--json", prompt="one two three four", code=None)
    assert code == 0 and again != err and json.loads(out)["ids"][:80] == o["ids"][:80], again
    # a conversation lets go of its oldest turns
    turns = "".join(f"turn number {i}\n" for i in range(12)).encode()
    chat = ("chat", "-m", chat_model(), "--ctx", "160", "-n", "4", "--temp", "0")
    code, out, err = quern(*chat, "--slide", stdin=turns, code=None)
    assert code == 0 and "dropped from the conversation, user: turn number 0\n" in err and "turn number 11" not in err, err
    code, out, err = quern(*chat, stdin=turns, code=None)
    assert code == 1 and "outgrown the context" in err, err


def test_a_closed_pipe_ends_it():
    p = subprocess.Popen([QUERN, "run", "-m", chat_model(), "--raw", "-p", "x", "--ignore-end", "-n", "400"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.read(1)
    p.stdout.close()
    assert p.wait(60) in (-13, 1), p.returncode
    with open("/dev/full", "wb") as full:
        p = subprocess.run([QUERN, "run", "-m", chat_model(), "--raw", "-p", "x", "-n", "9"], stdout=full, stderr=subprocess.PIPE, check=False)
        assert p.returncode == 1 and b"cannot write" in p.stderr, p.stderr


def test_closed_streams_are_not_written_to():
    """A saved chat must not get the number of a closed stdout, and the answers with it."""
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        path = os.path.join(folder, "chat.json")
        p = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&- 2>&-', QUERN, "chat", "-m", chat_model(), "-n", "3"],
                           input=f"/save {path}\nhello\n".encode(), timeout=60, check=False)
        with open(path, encoding="utf-8") as f:
            assert json.load(f)["messages"] == []
        assert p.returncode == 1, p.returncode


# ---- the chat in a pipe ----

def chat(lines, *options, code=0, model=None):
    args = ("chat", "-m", model or chat_model(), "--seed", "5", "-n", "6", "--ctx", "2000", *options)
    got, out, err = quern(*args, stdin=lines.encode(), code=None)
    assert got == code, f"exit code {got}, not {code}: {err}"
    assert b"\x1b" not in out
    return out.decode(), err


def saved(lines, *options, **more):
    """The messages after these lines."""
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        path = os.path.join(folder, "chat.json")
        out, err = chat(lines + f"/save {path}\n", *options, **more)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["messages"], out, err


def test_piped_chat():
    messages, out, _ = saved("hello\n\n  \nand again\n", "-s", "Be brief.")
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert out == "".join(m["content"] + "\n" for m in messages if m["role"] == "assistant"), "the answers alone, each with a newline"
    assert [m["content"] for m in messages if m["role"] == "user"] == ["hello", "and again"]
    assert chat("")[0] == "" and chat("/exit\nnot read\n")[0] == ""
    last = chat("no newline at the end")[0]
    assert last.endswith("\n")
    assert chat("hello\nand again\n", "-s", "Be brief.")[0] == out, "a seed gives the same conversation"


def test_piped_commands():
    messages, _, err = saved('one\\\ntwo\n"""\nthree\n\nfour\n"""\n/undo\n//etc/passwd\n/stats\n/help\n')
    assert [m["content"] for m in messages if m["role"] == "user"] == ["one\ntwo", "/etc/passwd"]
    assert "tokens/s" in err and "/regen" in err
    chat("/nonsense\n", code=1)
    chat("/regen\n/undo\n/system\n/clear\n")
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        path = os.path.join(folder, "chat.json")
        chat(f"hello\n/save {path}\n")
        messages, _, _ = saved(f"/load {path}\nmore\n")
        assert [m["content"] for m in messages if m["role"] == "user"] == ["hello", "more"]
        assert os.listdir(folder) == ["chat.json"]


def test_piped_chat_goes_on_after_a_fault():
    messages, out, err = saved("word " * 300 + "\nhi\n", "--ctx", "200", code=1)
    assert [m["content"] for m in messages if m["role"] == "user"] == ["hi"] and "/undo" in err and out.count("\n") >= 1, (messages, err)


def test_prefix_is_reused():
    """The first token of a late turn costs no more than its new text: nearly all of the prompt is in the cache."""
    _, err = chat("Tell me a story.\n" + "Go on.\n" * 5, "-n", "24", "--stats", model=talking_model())
    lines = [line.split() for line in err.split("\n") if line.startswith("prompt ")]
    assert len(lines) == 6
    for words in lines[1:]:
        n, cached = int(words[1]), int(words[3].lstrip("("))
        assert n - cached < 70, words


def test_a_conversation_makes_sense():
    out, _ = chat("What is the capital of France?\n", "-n", "64", "--temp", "0", model=talking_model())
    assert "Paris" in out, out


main(globals())
