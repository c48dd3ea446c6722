"""The chat under a pseudo-terminal: typing, editing, Ctrl-C, Ctrl-D, commands."""
import json
import os
import re
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import chat_model, main, quern, talking_model  # noqa: E402
from terminal import Terminal  # noqa: E402

PROMPT = re.compile(rb"\n(?:\x1b\[[0-9;]*[A-Za-z])*\r?> |> (?:\x1b\[0m)?$")
CTRL_A, CTRL_C, CTRL_D, CTRL_U, BACKSPACE, UP, LEFT = "\x01", "\x03", "\x04", "\x15", "\x7f", "\x1b[A", "\x1b[D"


class Chat(Terminal):
    """`quern chat` with short answers in a cache folder of its own."""

    def __init__(self, *options, model=None, env=None, folder=None):
        self.own = tempfile.TemporaryDirectory(prefix="quern-chat-") if folder is None else None
        self.folder = folder or self.own.name
        options = options or ("-n", "4")
        super().__init__("chat", "-m", model or chat_model(), "--seed", "1", "--ctx", "2000", *options, env={"QUERN_CACHE": self.folder, **(env or {})})
        self.expect(PROMPT)

    def __exit__(self, *e):
        super().__exit__(*e)
        if self.own:
            self.own.cleanup()

    def say(self, text):
        """Type, and wait for the next prompt."""
        self.type(text + "\n")
        self.expect(PROMPT)

    def messages(self):
        """What the conversation holds, through /save."""
        path = os.path.join(self.folder, "saved.json")
        self.type(f"/save {path}\n")
        self.expect("(saved to")
        self.expect(PROMPT)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["messages"]

    def said(self):
        return [m["content"] for m in self.messages() if m["role"] == "user"]


def test_typing_and_leaving():
    with Chat() as c:
        assert os.path.basename(chat_model()).encode() in c.seen, "the greeting names the file"
        c.say("hello")
        assert [m["role"] for m in c.messages()] == ["user", "assistant"]
        c.type("/exit\n")
        assert c.wait() == 0
    with Chat() as c:
        c.type(CTRL_D)
        assert c.wait() == 0, "Ctrl-D leaves with 0"
        assert c.seen.endswith(b"\n"), "what follows begins a line"
    with Chat() as c:
        c.type("/quit\n")
        assert c.wait() == 0


def test_ctrl_c_at_the_empty_prompt():
    with Chat() as c:
        c.type(CTRL_C)
        c.expect("Ctrl-C again leaves")
        c.expect(PROMPT)
        c.type(CTRL_C)
        assert c.wait() == 130
    with Chat() as c:
        c.type(CTRL_C)
        c.expect("Ctrl-C again leaves")
        c.expect(PROMPT)
        c.say("hello")  # a turn between the two: they are not in a row
        c.type(CTRL_C)
        c.expect("Ctrl-C again leaves")
        c.expect(PROMPT)
        c.type("/exit\n")
        assert c.wait() == 0


def test_ctrl_c_on_a_line_drops_the_line():
    with Chat() as c:
        c.type("not this")
        c.expect("not this")
        c.type(CTRL_C)
        c.expect(PROMPT)
        c.say("but this")
        assert c.said() == ["but this"]
        assert b"again leaves" not in c.seen


def test_ctrl_c_stops_the_answer():
    with Chat("--temp", "0", "-n", "1000", model=talking_model()) as c:
        c.type("Write a very long story about a lighthouse, with many chapters.\n")
        c.expect(re.compile(rb"chapters\.\r\n.{20}", re.S))
        c.type(CTRL_C)
        c.expect("(stopped; Ctrl-C again leaves)", 20)
        c.expect(PROMPT)
        turns = c.messages()
        assert [m["role"] for m in turns] == ["user", "assistant"] and len(turns[1]["content"]) >= 10, turns
        c.type("Say hello.\n")
        c.expect(re.compile(rb"hello\.\r\n.+", re.S))
        c.type(CTRL_C)
        c.expect("(stopped", 20)
        c.expect(PROMPT)
        c.type(CTRL_C)
        assert c.wait() == 130, "the one that stopped the answer is the first of two"


def test_editing():
    with Chat() as c:
        c.say("hellx" + BACKSPACE + "o")
        c.say("bc" + CTRL_A + "a")
        c.say("ac" + LEFT + "b")
        c.say("gone" + CTRL_U + "stays")
        c.say("gr\u00fc\u00dfe \u4e2d" + BACKSPACE + "\U0001f600")
        c.say(UP)  # the line before, again
        assert c.said() == ["hello", "abc", "abc", "stays", "gr\u00fc\u00dfe \U0001f600", "gr\u00fc\u00dfe \U0001f600"], c.said()


def test_history_is_kept():
    with tempfile.TemporaryDirectory(prefix="quern-chat-") as folder:
        with Chat(folder=folder) as c:
            c.say("remember me")
            c.type("/exit\n")
            assert c.wait() == 0
        path = os.path.join(folder, "chat_history")
        assert os.stat(path).st_mode & 0o077 == 0, "only its owner may read what was typed"
        with Chat(folder=folder) as c:
            c.say(UP + UP)
            assert c.said() == ["remember me"]


def test_several_lines():
    with Chat() as c:
        c.type("one\\\n")
        c.expect("\n. ")
        c.say("two")
        c.type('"""\n')
        c.expect("\n. ")
        c.type("three\n")
        c.expect("\n. ")
        c.type("\n")
        c.expect("\n. ")
        c.say('  four"""')
        c.say('"""five"""')
        c.say("//six")
        assert c.said() == ["one\ntwo", "three\n\n  four", "five", "/six"], c.said()


def test_commands():
    with Chat("-n", "4", "-s", "Be brief.") as c:
        c.type("/help\n")
        for name in ("clear", "system", "regen", "undo", "save", "load", "stats", "exit"):
            c.expect("/" + name)
        c.expect(PROMPT)
        c.type("/system\n")
        c.expect("Be brief.")
        c.expect(PROMPT)
        c.say("first")
        c.say("second")
        before = c.messages()
        assert [m["role"] for m in before] == ["system", "user", "assistant", "user", "assistant"]
        c.say("/regen")
        after = c.messages()
        assert before[:4] == after[:4] and after[4]["role"] == "assistant"
        c.type("/stats\n")
        c.expect("tokens/s")
        c.expect("context")
        c.expect(PROMPT)
        saved = os.path.join(c.folder, "kept.json")
        c.say(f"/save {saved}")
        c.say("/undo")
        assert c.said() == ["first"]
        c.say("/system Be long.")
        c.say("/clear")
        assert c.messages() == [{"role": "system", "content": "Be long."}]
        c.say("/system -")
        assert c.messages() == []
        c.say(f"/load {saved}")
        assert c.messages() == after
        c.type("/load /nowhere/at/all\n")
        c.expect("cannot read /nowhere/at/all")
        c.expect(PROMPT)
        c.type("/load\n")
        c.expect("/load needs a FILE")
        c.expect(PROMPT)
        c.type("/nonsense\n")
        c.expect("no command '/nonsense'")
        c.expect(PROMPT)
        assert c.messages() == after, "a command that fails changes nothing"


def test_bad_files_are_refused():
    with Chat() as c:
        c.say("hello")
        before = c.messages()
        bad = os.path.join(c.folder, "bad.json")
        good = {"quern_chat": 1, "settings": {}, "messages": []}
        for text in ("", "[]", "{", "{}", json.dumps({**good, "messages": [1]}), json.dumps({**good, "messages": [{"role": "boss", "content": "x"}]}),
                     json.dumps({**good, "messages": [{"role": "user", "content": None}]}), json.dumps({**good, "settings": {"top-p": 7}}),
                     json.dumps({**good, "settings": {"order": "nonsense"}}), json.dumps({**good, "settings": {"seed": -4}})):
            with open(bad, "w", encoding="utf-8") as f:
                f.write(text)
            c.type(f"/load {bad}\n")
            c.expect("quern: ")
            c.expect(PROMPT)
        c.type("/save /nowhere/at/all\n")
        c.expect("cannot write /nowhere/at/all")
        c.expect(PROMPT)
        assert c.messages() == before


def test_the_context_fills_up():
    with Chat("-n", "8", "--ctx", "200") as c:
        c.type("word " * 300 + "\n")
        c.expect("/undo")
        c.expect(PROMPT)
        assert c.messages() == [], "a turn that found no room is not kept"
        c.say("hi")
        c.type("/exit\n")
        assert c.wait() == 0


def test_session():
    with tempfile.TemporaryDirectory(prefix="quern-chat-") as folder:
        path = os.path.join(folder, "talk")
        with Chat("-n", "8", "--session", path) as c:
            c.say("hello there")
            first = c.messages()
            c.type("/exit\n")
            c.expect("(kept in")
            assert c.wait() == 0
        size = os.path.getsize(path)
        with Chat("-n", "8", "--session", path, "--stats") as c:
            c.at = 0  # Chat() has taken the old turn's "> " for a prompt
            for shown in ("(2 turns from", "> hello there", PROMPT):
                c.expect(shown)
            os.kill(c.pid, signal.SIGHUP)  # a terminal that goes away does not lose what was said
            c.type("go on\n")
            prompt, cached = map(int, c.expect(re.compile(rb"prompt +(\d+) tokens \((\d+) of them cached")).groups())
            c.expect(PROMPT)
            assert cached >= 8 and prompt > cached, "the first turn is not evaluated again"
            assert c.messages()[:2] == first and c.said() == ["hello there", "go on"]
            c.type(CTRL_D)
            assert c.wait() == 0
        assert os.path.getsize(path) > 0
        with open(path, "rb") as f:
            kept = f.read()
        assert len(kept) >= size
        options = ("chat", "-m", chat_model(), "--ctx", "2000", "--session", path)
        code, _, err = quern(*options, "--cache-type", "Q8_0", code=None)
        assert code == 1 and "another format" in err, err
        with open(path, "r+b") as f:
            f.truncate(len(kept) - 100)
        code, _, err = quern(*options, stdin=b"lost?\n", code=None)
        assert code == 1 and "cut short" in err.splitlines()[-1], err
        assert os.path.getsize(path) == len(kept) - 100, "what is refused is left alone"
        code, out, err = quern(*options[:-1], os.path.join(folder, "no", "where"), stdin=b"hello\n", code=None)
        assert code == 1 and out == b"" and "cannot create" in err, (out, err)


def test_colour():
    with Chat() as c:
        assert b"\x1b[1;32m" in c.seen
    with Chat(env={"NO_COLOR": "1"}) as c:
        c.say("hello")
        assert not re.search(rb"\x1b\[[0-9;]*m", c.seen)
    with Chat(env={"TERM": "dumb"}) as c:
        c.say("hello")
        assert b"\x1b[1;32m" not in c.seen


def test_control_characters_of_the_model_do_not_reach_the_terminal():
    model = talking_model()
    ids = json.loads(quern("tokenize", "-m", model, "--jsonl", stdin=b'{"text":"\\u001b","add_special":false,"parse_special":false}\n'))["ids"]
    assert len(ids) == 1
    force = ("run", "-m", model, "--raw", "-p", "x", "-n", "3", "--temp", "0", "--logit-bias", f"{ids[0]}=1000")
    assert quern(*force) == b"\x1b\x1b\x1b", "in a pipe the bytes are the model's"
    with Terminal(*force) as t:
        assert t.wait() == 0
        assert b"\x1b\x1b" not in t.seen and t.seen.count(b"\x1b") <= t.seen.count(b"\x1b[K"), t.seen


def test_run_ends_the_line_on_a_terminal():
    model = chat_model()
    with Terminal("run", "-m", model, "--raw", "-p", "a", "-n", "2", "--seed", "3") as t:
        assert t.wait() == 0 and t.seen.endswith(b"\n"), t.seen


def test_ctrl_c_ends_run():
    with Terminal("run", "-m", talking_model(), "-p", "Write a very long story.", "-n", "2000", "--ignore-end") as t:
        t.expect(re.compile(rb"\w{3,} \w+"))
        t.type(CTRL_C)
        assert t.wait(20) == 130


main(globals())
