"""The logits of two real models against log-probabilities computed in float64 from the same files.

Distance is the Kullback-Leibler divergence KL(gold || ours) in nats over 33 bins: the 32 ids that the gold lists at a position, and all the rest
together. The bound is what llama.cpp (default mode) reaches on the same file and prompts. Greedy: with the gold's tokens forced in, our
most likely token is the gold's wherever the gold's two best logits are more than 0.05 apart.
"""
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import support
from support import Skip, SOURCE

MARGIN = 0.05
GOLD = support.ref("gold") or os.path.join(SOURCE, "tests", "data", "gold")


def load(name):
    path = os.path.join(GOLD, name)
    if not os.path.exists(path):
        raise Skip(f"no {path}")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def log_sum_exp(row):
    """Natural log of the sum of exponentials. In double the logits need no shift below 700."""
    assert -700 < max(row) < 700, "a logit is out of all proportion"
    return math.log(math.fsum(map(math.exp, row)))


def kl_33(top, row, lse):
    """`top`: [[id, log-probability], ...] of the gold."""
    kl, p_rest, q_rest = 0.0, 1.0, 1.0
    for i, logp in top:
        p, logq = math.exp(logp), row[i] - lse
        kl += p * (logp - logq)
        p_rest -= p
        q_rest -= math.exp(logq)
    if p_rest > 1e-9:
        kl += p_rest * math.log(p_rest / max(q_rest, 1e-12))
    return kl


def measure(model, prompt, options):
    """Figures of one prompt, named as in llama_cpp.json."""
    tokens, greedy = prompt["tokens"], prompt["greedy"]
    at = {p["pos"]: p["top"] for p in prompt["positions"]}
    kl, top1, nll_diff, missed = [], 0, 0.0, []
    n = len(tokens)
    with support.Logits(model, tokens + greedy["tokens"][:-1], *options) as out:
        for i in range(out.n):
            row = out.row(i)
            if i < n - 1 or i in at:
                lse = log_sum_exp(row)
            if i < n - 1:
                nll_diff += abs(lse - row[tokens[i + 1]] - prompt["nll"][i])
            if i in at:
                kl.append(kl_33(at[i], row, lse))
                top1 += row[at[i][0][0]] == max(row)
            step = i - (n - 1)
            if step >= 0 and row[greedy["tokens"][step]] != max(row):
                missed.append((step, greedy["margin"][step]))
    return {"kl_mean": sum(kl) / len(kl), "kl_max": max(kl), "top1": top1 / len(kl), "nll_abs_diff": nll_diff / (n - 1), "missed": missed}


def compare(name, model, options=(), only=None):
    gold, peers = load(name + ".json"), load("llama_cpp.json")[name]
    peer_of = next(v for k, v in peers.items() if k.startswith("default (")) # {prompt: figures}
    wrong = []
    print(f"{name} {' '.join(options)}\n  prompt  KL mean  (llama.cpp)   KL max   (llama.cpp)  |dNLL|  (llama.cpp)  top-1  greedy: margins missed")
    for prompt in gold["prompts"]:
        if only and prompt["id"] not in only:
            continue
        ours, peer = measure(model, prompt, options), peer_of[prompt["id"]]
        print(f"  {prompt['id']:6s} {ours['kl_mean']:9.1e} ({peer['kl_top32_mean_recorded_positions']:9.6f}) {ours['kl_max']:9.1e} "
              f"({peer['kl_top32_max_recorded_positions']:9.6f}) {ours['nll_abs_diff']:8.5f} ({peer['nll_abs_diff_mean']:8.5f}) {ours['top1']:6.3f}  "
              + " ".join(f"{m:.3f}" for _, m in ours["missed"]), flush=True)
        if ours["kl_mean"] > peer["kl_top32_mean_recorded_positions"]:
            wrong.append(f"{prompt['id']}: mean KL {ours['kl_mean']:.3g} is above {peer['kl_top32_mean_recorded_positions']:.6f}")
        if ours["nll_abs_diff"] > peer["nll_abs_diff_mean"]:
            wrong.append(f"{prompt['id']}: mean NLL difference {ours['nll_abs_diff']:.6f} is above {peer['nll_abs_diff_mean']:.6f}")
        wrong += [f"{prompt['id']}: greedy step {s} differs at a margin of {m}" for s, m in ours["missed"] if m > MARGIN]
    assert not wrong, "\n  ".join(["", *wrong])


def gemma3():
    path = os.environ.get("QUERN_GEMMA3")
    return path if path else support.cached_model("gemma3-270m-q4_k_m.gguf")


def test_tokens_of_the_prompts():
    model = support.cached_model()
    prompts = load("smollm2.json")["prompts"]
    lines = "".join(json.dumps({"text": p["text"], "add_special": True, "parse_special": True}) + "\n" for p in prompts)
    out = support.quern("tokenize", "-m", model, "--jsonl", stdin=lines.encode())
    for p, line in zip(prompts, out.decode().splitlines(), strict=True):
        assert json.loads(line)["ids"] == p["tokens"], f"ids of {p['id']} differ"


def test_smollm2():
    compare("smollm2", support.cached_model())


def test_smollm2_exact():
    compare("smollm2", support.cached_model(), ("--exact",), only=("prose", "chat"))


def test_gemma3():
    compare("gemma3", gemma3())


if __name__ == "__main__":
    support.main(globals())
