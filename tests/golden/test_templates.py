"""Chat templates, rendered as Hugging Face's transformers does: a sample in tests/data, and every template and feature of the reference
data where that is present."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import SOURCE, Skip, main, quern, ref, chat_model  # noqa: E402

NOW = "2026-01-15T12:00:00"
SHARED = os.environ.get("QUERN_REFS") or os.path.join(SOURCE, "..", "shared")


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return [json.loads(line) for line in f]


def jsonl(records, *options):
    """Answers of quern template to these records."""
    text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    out = quern("template", "--jsonl", *options, stdin=text.encode("utf-8", "surrogatepass")).decode().split("\n")
    assert out[-1] == "" and len(out) == len(records) + 1, f"{len(out) - 1} answers to {len(records)} lines"
    return [json.loads(line) for line in out[:-1]]


def compare(name, want, got):
    """None, or what is wrong."""
    if "expected" in want:
        return None if got.get("text") == want["expected"] else f"{name}: {json.dumps(got)[:300]}, expected {want['expected'][:200]!r}"
    if "error" not in got:
        return f"{name}: {got['text'][:200]!r}, expected the error {want['error']!r}"
    return f"{name}: {got['error']!r}, not {want['error']!r}" if want["error_kind"] == "raise" and got["error"] != want["error"] else None


def check_features(records):
    got = jsonl([{"template": r["template"], "context": r["context"], "now": NOW} for r in records], "--raw")
    wrong = [w for r, g in zip(records, got) if (w := compare(r["name"], r, g))]
    assert not wrong, f"{len(wrong)} of {len(records)}:\n    " + "\n    ".join(wrong[:10])


def test_sample():
    check_features(lines(os.path.join(SOURCE, "tests", "data", "template_features.jsonl")))


def test_jinja_extra():
    """What Jinja2 3.1.6 in a sandbox with transformers' settings makes of every operator, filter, test and method."""
    check_features(lines(os.path.join(SOURCE, "tests", "data", "jinja_extra.jsonl")))


def test_all_features():
    path = os.path.join(SHARED, "templates", "features.jsonl")
    if not os.path.exists(path):
        raise Skip("no templates/features.jsonl in the reference data")
    check_features(lines(path))


def test_all_templates():
    folder = os.path.join(SHARED, "templates")
    if not os.path.exists(os.path.join(folder, "cases.jsonl")):
        raise Skip("no templates/cases.jsonl in the reference data")
    by_template = {}
    for r in lines(os.path.join(folder, "cases.jsonl")):
        by_template.setdefault(r["template"], []).append(r)
    wrong = []
    for template, records in by_template.items():
        keys = ("messages", "tools", "documents", "add_generation_prompt", "kwargs")
        asked = [{**{k: r[k] for k in keys if k in r}, "bos_token": "<s>", "eos_token": "</s>", "now": NOW} for r in records]
        got = jsonl(asked, "--file", os.path.join(folder, template))
        wrong += [w for r, g in zip(records, got) if (w := compare(f"{template} {r['case']}", r, g))]
    assert not wrong, f"{len(wrong)}:\n    " + "\n    ".join(wrong[:10])


def test_budgets():
    hostile = ["{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", "{{ 'a' * 2000000000 }}",
               "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{{ range(10 ** 9) | list }}", "{{ " + "(" * 20000 + ")" * 20000 + " }}",
               "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}",
               "{{ '%1000000000d' % 1 }}", "{{ '{:>1000000000}'.format(1) }}", "{{ [].__class__ }}", "{{ ''.__class__.__mro__ }}",
               "{% if " + "not " * 50000 + "x %}{% endif %}", "{% for x in y recursive %}{{ loop(y) }}{% endfor %}{{ z", "{{", "{% raw %}", "{#"]
    got = jsonl([{"template": t, "context": {"y": [1]}} for t in hostile], "--raw")
    for t, g in zip(hostile, got):
        assert "error" in g or len(g["text"]) < 100, f"{t[:60]}: {json.dumps(g)[:100]}"


def test_bad_lines():
    out = quern("template", "--raw", "--jsonl", stdin=b'{\n[]\n{}\n\n{"template":"x"}\n{"template":"\xff"}\n{"template":"{{ a }}","context":{"a":"\\u0000b"}}\n')
    got = [json.loads(line) for line in out.decode().split("\n")[:-1]]
    assert ["error" in g for g in got] == [True, True, True, False, True, False], got
    assert got[3] == {"text": "x"} and got[5] == {"text": "\0b"}


def test_user_text_makes_no_control_tokens():
    """What a user writes never closes his turn: the text of a control token is as many tokens as other text of its length."""
    model = chat_model()
    for marker in ("<s>", "</s>", "<|im_end|>"):
        assert marker in quern("template", "-m", model, "-p", marker).decode()
        n, empty = (json.loads(quern("run", "-m", model, "-p", text, "-n", "1", "--json"))["n_prompt"] for text in (marker, "a"))
        assert n >= empty + 1, f"{marker} is {n - empty + 1} token"


main(globals())
