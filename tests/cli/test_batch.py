"""`quern batch`: each answer is that of a run by itself, a bad line spoils no other, and a run that was killed goes on where it stopped."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, chat_model, main, quern, talking_model  # noqa: E402
from terminal import Terminal  # noqa: E402


class Files:
    """A folder with requests and results. `lines`: objects, or bytes as they are."""

    def __init__(self, lines):
        self.own = tempfile.TemporaryDirectory(prefix="quern-batch-")
        self.requests, self.results = (os.path.join(self.own.name, x) for x in ("requests.jsonl", "results.jsonl"))
        self.write(lines)

    def write(self, lines):
        with open(self.requests, "wb") as f:
            f.writelines((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines)

    def command(self, *options, model=None):
        return ["batch", self.requests, "-o", self.results, "-m", model or chat_model(), "-c", "512", *options]

    def run(self, *options, code=0, **more):
        """The results so far by custom_id or line, and what stderr got."""
        got, out, err = quern(*self.command(*options, **more), code=None)
        assert got == code and out == b"", (got, code, err)
        return self.read(), err

    def read(self):
        with open(self.results, "rb") as f:
            results = [json.loads(x) for x in f]
        by = {r["custom_id"] or r["line"]: r for r in results}
        assert len(by) == len(results), "no request has two results"
        return by

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.own.cleanup()


def texts(result):
    return [c["message"]["content"] if "message" in c else c["text"] for c in result["response"]["body"]["choices"]]


def story(i, **more):
    return {"custom_id": f"story {i}", "method": "POST", "url": "/v1/completions", "body": {"prompt": f"Chapter {i}. There", "max_tokens": 30, "seed": i, **more}}


def test_each_answer_is_that_of_a_run():
    alone = {}
    lines = []
    for i, temp in enumerate(("0", "1.5", "0.7", "0")):
        prompt, options = f"{'The same beginning. ' * 8}Part {i}", ("-n", "12", "--seed", str(i), "--temp", temp, "--top-p", "0.9", "-c", "512")
        asks = {"max_tokens": 12, "seed": i, "temperature": float(temp), "top_p": 0.9}
        lines.append({"custom_id": f"raw {i}", "prompt": prompt, **asks})
        alone[f"raw {i}"] = quern("run", "-m", chat_model(), "--raw", "-p", prompt, *options)
        lines.append({"custom_id": f"chat {i}", "method": "POST", "url": "/v1/chat/completions",
                      "body": {"model": "any", "messages": [{"role": "user", "content": prompt}], **asks}})
        alone[f"chat {i}"] = quern("run", "-m", chat_model(), "-p", prompt, *options)
    for parallel in ("1", "3", "8"):
        with Files(lines) as f:
            results, err = f.run("--parallel", parallel)
            assert "done" not in err and "\x1b" not in err and set(results) == set(alone), "a pipe is told no progress"
            for name, want in alone.items():
                assert texts(results[name]) == [want.decode("utf-8", "replace")], (parallel, name)


def test_the_shape_of_a_result():
    chat = {"custom_id": "c", "method": "POST", "url": "/v1/chat/completions",
            "body": {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "max_completion_tokens": 3,
                     "n": 3, "seed": 5, "stop": None, "stream": False, "metadata": {"x": 1}}}
    with Files([chat, b"", {"prompt": [1, 2, 3], "max_tokens": 2, "logit_bias": {"5": -100, "6": 1.5}, "stop": ["zzz"]}]) as f:
        results, _ = f.run()
        c, p = results["c"], results[3]
        assert list(c) == ["id", "custom_id", "line", "response", "error"] and c["error"] is None and c["line"] == 1 and p["custom_id"] is None
        body = c["response"]["body"]
        assert c["response"]["status_code"] == 200 and body["object"] == "chat.completion" and [x["index"] for x in body["choices"]] == [0, 1, 2]
        assert all(x["message"]["role"] == "assistant" and x["finish_reason"] in ("stop", "length") for x in body["choices"])
        use = body["usage"]
        assert use["total_tokens"] == use["prompt_tokens"] + use["completion_tokens"] and 3 <= use["completion_tokens"] <= 9, use
        body = p["response"]["body"]
        assert body["object"] == "text_completion" and body["usage"]["prompt_tokens"] == 3 and body["choices"][0]["logprobs"] is None
        alone = [quern("run", "-m", chat_model(), "-p", "ab", "-n", "3", "--seed", 5 + i).decode("utf-8", "replace") for i in range(3)]
        assert texts(c) == alone, "choice i draws from seed + i"


BAD = [
    (b"nonsense", None, "no JSON"),
    (b'{"prompt": "a", "prompt": "b"}', None, "no JSON"),
    (b"[1]", None, "object"),
    ({"custom_id": "twice", "prompt": "a"}, "custom_id", "line 1"),
    ({"custom_id": 7, "prompt": "a"}, "custom_id", "text"),
    ({"max_tokens": 3}, None, "neither"),
    ({"prompt": "a", "temperature": -1}, "temperature", "-1"),
    ({"prompt": "a", "temperature": "hot"}, "temperature", "hot"),
    ({"prompt": "a", "top_p": 1.5}, "top_p", "0 to 1"),
    ({"prompt": "a", "top_k": 1.5}, "top_k", "whole"),
    ({"prompt": "a", "n": 0}, "n", "1 to 128"),
    ({"prompt": "a", "max_tokens": 0}, "max_tokens", "from 1"),
    ({"prompt": "a", "stop": ["b", ""]}, "stop", "not empty"),
    ({"prompt": "a", "logit_bias": {"x": 1}}, "logit_bias", "'x'"),
    ({"prompt": "a", "logprobs": 2}, "logprobs", "not supported"),
    ({"prompt": "a", "stream": True}, "stream", "not supported"),
    ({"prompt": "a", "colour": "red"}, "colour", "not supported"),
    ({"prompt": "a", "messages": []}, "prompt", "messages"),
    ({"messages": []}, "messages", "array"),
    ({"prompt": ["a", "b"]}, "prompt", "a line for each"),
    ({"prompt": [1, -2]}, "prompt", "item 1"),
    ({"prompt": [10**8]}, None, "no token"),
    ({"prompt": "a " * 3000}, None, "context"),
    ({"messages": [{"content": "a"}]}, "messages[0].role", "missing"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content", "image_url"),
    ({"messages": [{"role": "user", "content": "a"}], "tools": [{}]}, "tools", "not supported"),
    ({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}}, "response_format", "not supported"),
    ({"method": "POST", "url": "/v1/embeddings", "body": {}}, "url", "/v1/completions"),
    ({"method": "GET", "url": "/v1/completions", "body": {}}, "method", "POST"),
    ({"method": "POST", "url": "/v1/completions", "body": 3}, "body", "no object"),
    ({"method": "POST", "url": "/v1/completions", "body": {"n": 1}}, "prompt", "missing"),
    ({"method": "POST", "url": "/v1/completions", "body": {"prompt": "a"}, "max_tokens": 3}, "max_tokens", "inside"),
]


def test_a_bad_line_is_named_and_the_others_go_on():
    good = {"custom_id": "twice", "prompt": "a", "max_tokens": 2}
    with Files([good, *(x for x, _, _ in BAD), {**good, "custom_id": "last"}]) as f:
        results, err = f.run(code=1)
        assert f"{len(BAD)} of {len(BAD) + 2} requests failed" in err, err
        assert texts(results["twice"]) and texts(results["last"])
        for number, (line, field, says) in enumerate(BAD, 2):
            e = results[number]
            assert e["response"] is None and e["error"]["param"] == field and e["error"]["code"] == "invalid_request", (line, e)
            assert e["error"]["message"].startswith(f"line {number}: ") and says in e["error"]["message"], (line, e)
        again, err = f.run(code=1)
        assert again == results and "requests failed" in err, "errors are results too: nothing is done again, and the exit code stays"


def test_a_kill_loses_and_repeats_nothing():
    lines = [story(i) for i in range(40)]
    options = ("--parallel", "4")
    with Files(lines) as f:
        whole, _ = f.run(*options)
    with Files(lines) as f:
        for n_wanted in (3, 12, 25):
            p = subprocess.Popen([QUERN, *f.command(*options)], stderr=subprocess.DEVNULL)
            while p.poll() is None and (not os.path.exists(f.results) or open(f.results, "rb").read().count(b"\n") < n_wanted):
                time.sleep(0.001)
            p.send_signal(signal.SIGKILL)
            p.wait()
            with open(f.results, "rb") as r:
                kept = r.read()
            assert kept.count(b"\n") >= n_wanted
            with open(f.results, "ab") as r:
                r.write(b'{"id": "batch_req_00ff' if n_wanted % 2 else b'{"i')  # torn in the middle of a write
        results, _ = f.run(*options)
        with open(f.results, "rb") as r:
            assert r.read().startswith(kept), "what was there stays"
        assert set(results) == set(whole) and all(texts(results[k]) == texts(whole[k]) for k in whole)


def test_results_of_something_else_stay_as_they_are():
    for there in (b"a diary\n", b"a diary", b'{"id": "x"}\n', b'{"id": "batch_req_1", "custom_id": "other", "line": 1}\n', b"\0\0\0"):
        with Files([story(1)]) as f:
            with open(f.results, "wb") as r:
                r.write(there)
            code, out, err = quern(*f.command(), code=None)
            assert code == 1 and out == b"" and f.results in err and "another file" in err, (there, err)
            with open(f.results, "rb") as r:
                assert r.read() == there
    with Files([story(1), {"prompt": "a", "max_tokens": 1}]) as f:
        f.run()
        f.write([story(1), {"prompt": "b", "max_tokens": 1}])
        code, _, err = quern(*f.command(), code=None)
        assert code == 1 and "line 2" in err and "another one" in err, err
        f.write([story(2), story(1), {"prompt": "a", "max_tokens": 1}])
        assert "line 2" in quern(*f.command(), code=None)[2], "a line without a custom_id goes by its number"


def test_interrupt_keeps_what_is_done():
    lines = [story(i, max_tokens=400) for i in range(300)]
    with Files(lines) as f:
        p = subprocess.Popen([QUERN, *f.command("--parallel", "2", model=talking_model())], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while p.poll() is None and (not os.path.exists(f.results) or not os.path.getsize(f.results)):
            time.sleep(0.005)
        p.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = p.communicate(timeout=60)
        assert p.returncode == 130 and out == b"" and err == b"" and time.monotonic() - began < 20, (p.returncode, err)
        results = f.read()
        assert 1 <= len(results) < len(lines) and all(r["error"] is None for r in results.values())


def test_progress_is_for_terminals():
    with Files([story(i) for i in range(12)]) as f:
        with Terminal(*f.command("--parallel", "1", model=talking_model())) as t:
            t.expect(re.compile(rb"[1-9]\d* of 12 done, [0-9.]+ tokens/s, 0:00:\d\d left"))
            while t.read(60):
                pass
        assert b"\n" not in t.seen.replace(b"\r\n", b"") and len(f.read()) == 12
        assert t.seen.endswith(b"\r\x1b[K"), "it is erased at the end"


def test_options():
    with Files([{"prompt": "a"}, {"prompt": "a", "max_tokens": 2, "temperature": 0.0}]) as f:
        results, _ = f.run("-n", "1", "--temp", "0", "--kv-memory", "64MiB", "--parallel", "3")
        assert [results[i]["response"]["body"]["usage"]["completion_tokens"] for i in (1, 2)] == [1, 2]
        out = quern("batch", "-", "-m", chat_model(), "-c", "64", "--stats", stdin=b'{"prompt": "a", "max_tokens": 1}')
        assert json.loads(out)["line"] == 1
        assert "another batch" not in quern(*f.command(), code=None)[2]
        for bad, says in (("64Q", "size"), ("-1", "size"), ("1", "positions fit")):
            with Files([{"prompt": "b"}]) as other:
                code, _, err = quern(*other.command(f"--kv-memory={bad}"), code=None)
            assert code in (1, 2) and says in err, (bad, err)
    assert "no file of requests" in quern("batch", code=None)[2]
    assert "/no/file" in quern("batch", "/no/file", code=None)[2]


main(globals())
