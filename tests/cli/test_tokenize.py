"""`quern tokenize` as a user and as a script see it."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import SOURCE, main, quern  # noqa: E402

BPE = os.path.join(SOURCE, "tests", "data", "tokenizer", "bpe.gguf")
SPM = os.path.join(SOURCE, "tests", "data", "tokenizer", "spm.gguf")


def lines(out):
    return [json.loads(x) for x in out.decode().splitlines()]


def test_outputs_agree():
    text = "the mill <|im_end|> é\n"
    ids = quern("tokenize", "-m", BPE, "-p", text, "--ids").split()
    assert int(quern("tokenize", "-m", BPE, "-p", text, "--count")) == len(ids)
    whole = json.loads(quern("tokenize", "-m", BPE, "-p", text, "--json"))
    assert whole["ids"] == [int(x) for x in ids] and whole["count"] == len(ids) == len(whole["pieces"])
    assert "".join(whole["pieces"][1:]) == text and whole["pieces"][0] == "<|endoftext|>"
    pieces = quern("tokenize", "-m", BPE, "-p", text).decode().splitlines()
    assert [x.split()[0] for x in pieces] == [x.decode() for x in ids]
    assert '"\\n"' in pieces[-1] or "\\n" in pieces[-1]


def test_sources_agree():
    text = b"a\xff\x00b <tool>\n"
    with tempfile.NamedTemporaryFile() as f:
        f.write(text)
        f.flush()
        from_file = quern("tokenize", "-m", BPE, "-f", f.name, "--ids")
    assert from_file == quern("tokenize", "-m", BPE, "--ids", stdin=text)
    assert quern("tokenize", "-m", BPE, "--decode", "--skip-special", stdin=from_file) == text + b"\n"


def test_special_switches():
    def n(*options):
        return int(quern("tokenize", "-m", BPE, "-p", "<|im_end|>", "--count", *options))
    assert n("--special", "--parse-special") == n("--parse-special") == 2
    assert n("--no-special", "--parse-special") == 1
    assert n("--no-special") > 5


def test_jsonl():
    asked = [{"text": "a\0b"}, {"text": ""}, {"text": "x", "add_special": False}, {"text": "<|im_end|>", "parse_special": True, "add_special": False}]
    answers = lines(quern("tokenize", "-m", BPE, "--jsonl", stdin="".join(json.dumps(a) + "\n" for a in asked).encode()))
    assert [len(a["ids"]) for a in answers] == [4, 1, 1, 1]
    back = lines(quern("tokenize", "-m", BPE, "--decode", "--jsonl", stdin="".join(json.dumps(a) + "\n" for a in answers).encode()))
    assert [b["text"] for b in back] == ["<|endoftext|>a\0b", "<|endoftext|>", "x", "<|im_end|>"]
    assert lines(quern("tokenize", "-m", BPE, "--jsonl", stdin=b'{"text":"no newline at the end"}'))[0]["ids"]
    assert quern("tokenize", "-m", BPE, "--jsonl") == b""


def test_bad_lines_do_not_stop():
    bad = [b"nope", b"", b"[1]", b'{"text":1}', b'{}', b'{"text":"a","add_special":1}', b'{"text":"a","parse_special":"yes"}',
           b'{"text":"\\ud800"}', b'{"text":"\xff"}']
    code, out, err = quern("tokenize", "-m", BPE, "--jsonl", code=None, stdin=b"\n".join(bad + [b'{"text":"good"}']) + b"\n")
    answers = lines(out)
    assert code == 1 and err == "", (code, err)
    assert all(list(a) == ["error"] and a["error"] for a in answers[:-1]) and len(answers) == len(bad) + 1, answers
    assert "ids" in answers[-1]
    bad = [b'{"ids":[-1]}', b'{"ids":[1.5]}', b'{"ids":["1"]}', b'{"ids":[123456789]}', b'{"ids":[99999999999]}', b'{"ids":3}', b"{}"]
    code, out, err = quern("tokenize", "-m", BPE, "--decode", "--jsonl", code=None, stdin=b"\n".join(bad + [b'{"ids":[]}']) + b"\n")
    answers = lines(out)
    assert code == 1 and all("error" in a for a in answers[:-1]) and answers[-1] == {"text": ""}, answers


def test_ill_formed_bytes_are_replaced_as_python_does():
    raws = [b"a\xffb", b"\xe6\xad", b"\xe6\xad\xa3\xe6", b"\xf0\x9f\x99", b"\xf0\x9f\x99\x82\xf0\x9f", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
            b"\xe0\x80x",
            b"\xf0\x80\x80\x80", b"\x80\x80", b"\xc3(", b"\xf1\x80\xc3\xa9", b"\xfe\xff"]
    for model in (BPE, SPM):
        ids = [[int(x) for x in quern("tokenize", "-m", model, "--no-special", "--ids", stdin=r).split()] for r in raws]
        out = lines(quern("tokenize", "-m", model, "--decode", "--jsonl", stdin="".join(json.dumps({"ids": i}) + "\n" for i in ids).encode()))
        for r, o in zip(raws, out):
            assert o["text"] == r.decode("utf-8", "replace"), (r, o)


def test_usage():
    for options in (["--jsonl", "-p", "x"], ["-p", "x", "-f", "y"], ["--ids", "--count"], ["--special", "--no-special"], ["--nonsense"]):
        code, out, _ = quern("tokenize", "-m", BPE, *options, code=None)
        assert code == 2 and out == b"", (options, code)
    for options in (["-f", "/no/such/file"], ["--decode", "-p", "1 x"], ["--decode", "-p", "-4"], ["--decode", "-p", "999999"]):
        code, out, err = quern("tokenize", "-m", BPE, *options, code=None)
        assert code == 1 and out == b"" and err.startswith("quern: "), (options, code, err)
    code, _, err = quern("tokenize", "-m", "/no/such/model.gguf", "-p", "x", code=None)
    assert code == 1 and "/no/such/model.gguf" in err


if __name__ == "__main__":
    main(globals())
