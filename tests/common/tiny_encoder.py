"""Tiny encoders, and decoders that embed, of random weights, written as GGUF, and what their published descriptions say comes out of them: plain sums in
double precision, nothing shared with the program."""
import math
import random
import struct

import gguf_file as g
from tiny_words import WORDPIECE


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + math.exp(-x))


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def times(w, x, b=None):
    """Rows of w by the vector x, plus b."""
    return [dot(r, x) + (b[i] if b else 0) for i, r in enumerate(w)]


def add(*vectors):
    return [sum(v) for v in zip(*vectors)]


# What an architecture's blocks are: those of BERT where nothing else is said. `windows`: of each layer, 0: everything; `bases`: of the rotation, likewise;
# `experts`: of every second layer, how many and how many of them run; `dense`: rows of the first matrix behind the pooling.
BERT = dict(layer_norm=True, norm_bias=True, pre=False, after=True, post=False, positions=True, types=2, embed_norm=True, biases=True, ff_bias=True,
            gate=None, act=gelu, bases=None, neox=True, windows=None, alibi=0, qk_norm=None, embed_sqrt=False, out_norm=None, first_norm=True, fused=False,
            causal=False, twice=False, experts=None, dense=0, cls_act=math.tanh, probabilities=False, words=WORDPIECE)
ROTATED = dict(positions=False, bases=[1000] * 3, fused=True)
PRE = dict(norm_bias=False, pre=True, after=False, positions=False, types=0, embed_norm=False, biases=False, ff_bias=False, out_norm="output_norm")
RMS = dict(PRE, layer_norm=False, act=silu)
ARCHS = {
    "bert": {},
    "nomic-bert": dict(ROTATED, biases=False, ff_bias=False, gate="own", act=silu),
    "nomic-bert-moe": dict(ROTATED, experts=(5, 2), keys=[(".expert_count", g.U32, 5), (".expert_used_count", g.U32, 2), (".moe_every_n_layers", g.U32, 2)]),
    "jina-bert-v2": dict(positions=False, gate="fused", alibi=8),
    "jina-bert-v3": dict(ROTATED),
    "modern-bert": dict(PRE, embed_norm=True, gate="fused", fused=True, first_norm=False, bases=[160000, 10000, 10000], windows=[0, 6, 6], cls_act=gelu),
    "neo-bert": dict(RMS, gate="fused", fused=True, neox=False, bases=[10000] * 3, out_norm="enc.output_norm"),
    "eurobert": dict(RMS, gate="own", bases=[250000] * 3),
    "llama-embed": dict(RMS, gate="own", neox=False, bases=[500000] * 3),
    "gemma-embedding": dict(RMS, gate="own", act=gelu, post=True, qk_norm="head", embed_sqrt=True, bases=[10000, 10000, 1000000], windows=[7, 7, 0],
                            keys=[(".attention.sliding_window_pattern", g.U32, 3)]),
    "qwen3": dict(RMS, gate="own", qk_norm="head", causal=True, bases=[1000000] * 3, probabilities=True),
}


class Encoder:
    def __init__(self, arch="bert", seed=1, n_embd=32, n_head=2, n_head_kv=0, n_ff=48, n_layer=3, n_ctx=64, labels=0, pooler=True, **other):
        self.arch, self.n_embd, self.n_head, self.n_ff, self.n_layer, self.n_ctx, self.labels = arch, n_embd, n_head, n_ff, n_layer, n_ctx, labels
        self.n_head_kv = n_head_kv or n_head
        self.c = {**BERT, **ARCHS[arch], **other}
        self.words = self.c["words"]
        self.head_dim = self.c.get("head_dim", n_embd // n_head)
        self.random = random.Random(seed)
        self.t = {}  # name: rows, or a vector
        self.make(pooler)

    # ---- weights ----

    def number(self, deviation, mean=0.0):
        return struct.unpack("<f", struct.pack("<f", self.random.gauss(mean, deviation)))[0]

    def matrix(self, name, rows, cols, deviation=0.25):
        self.t[name] = [[self.number(deviation) for _ in range(cols)] for _ in range(rows)]

    def vector(self, name, n, mean=0.0, deviation=0.2):
        self.t[name] = [self.number(deviation, mean) for _ in range(n)]

    def linear(self, name, rows, cols, bias):
        self.matrix(name + ".weight", rows, cols)
        if bias:
            self.vector(name + ".bias", rows)

    def norm_of(self, name, n=None):
        self.vector(name + ".weight", n or self.n_embd, mean=1.0)
        if self.c["norm_bias"]:
            self.vector(name + ".bias", n or self.n_embd)

    def make(self, pooler):
        c, e = self.c, self.n_embd
        self.matrix("token_embd.weight", len(self.words.tokens), e, 1.0)
        if c["types"]:
            self.matrix("token_types.weight", c["types"], e, 0.5)
        if c["positions"]:
            self.matrix("position_embd.weight", self.n_ctx, e, 0.5)
        if c["embed_norm"]:
            self.norm_of("token_embd_norm")
        for i in range(self.n_layer):
            self.make_layer(f"blk.{i}.", i)
        if c["out_norm"]:
            self.norm_of(c["out_norm"])
        if self.labels:
            if pooler == "alone":
                return self.linear("cls", self.labels, e, True)
            if pooler:
                self.linear("cls", e, e, c["biases"])
            if pooler and not c["biases"]:
                self.vector("cls.norm.weight", e, mean=1.0)
            self.linear("cls.output", self.labels, e, c["biases"])
        if c["dense"]:
            self.linear("dense_2", c["dense"], e, False)
            self.linear("dense_3", e, c["dense"], False)

    def make_layer(self, p, i):
        c, e, q, kv = self.c, self.n_embd, self.n_head * self.head_dim, self.n_head_kv * self.head_dim
        if c["pre"] and (i or c["first_norm"]):
            self.norm_of(p + "attn_norm")
        if c["fused"]:
            self.linear(p + "attn_qkv", q + 2 * kv, e, c["biases"])
        else:
            for name, rows in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
                self.linear(p + name, rows, e, c["biases"])
        if c["qk_norm"]:
            for name, n in (("attn_q_norm", q), ("attn_k_norm", kv)):
                self.norm_of(p + name, self.head_dim if c["qk_norm"] == "head" else n)
        self.linear(p + "attn_output", e, q, c["biases"])
        if c["pre"]:
            self.norm_of(p + "ffn_norm")
        self.make_feed(p, i)
        for name in (["attn_output_norm", "layer_output_norm"] if c["after"] else []) + (["post_attention_norm", "post_ffw_norm"] if c["post"] else []):
            self.norm_of(p + name)
        if c["twice"]:
            self.norm_of(p + "attn_norm_2")

    def make_feed(self, p, i):
        c, e = self.c, self.n_embd
        if c["experts"] and i % 2:
            self.linear(p + "ffn_gate_inp", c["experts"][0], e, False)
            for name, rows, cols in (("ffn_up_exps", self.n_ff, e), ("ffn_down_exps", e, self.n_ff)):
                self.t[p + name + ".weight"] = [[[self.number(0.25) for _ in range(cols)] for _ in range(rows)] for _ in range(c["experts"][0])]
            return
        if c["gate"] == "own":
            self.linear(p + "ffn_gate", self.n_ff, e, False)
        self.linear(p + "ffn_up", self.n_ff * (2 if c["gate"] == "fused" else 1), e, c["ff_bias"] and not c["gate"])
        self.linear(p + "ffn_down", e, self.n_ff, c["ff_bias"])

    # ---- what comes out ----

    def norm(self, name, x):
        mean = math.fsum(x) / len(x) if self.c["layer_norm"] else 0
        scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
        b = self.t.get(name + ".bias") or [0] * len(x)
        return [(v - mean) * scale * w + s for v, w, s in zip(x, self.t[name + ".weight"], b)]

    def rotated(self, x, position, base):
        n = self.head_dim
        out = list(x)
        for k in range(n // 2):
            a, b = (k, k + n // 2) if self.c["neox"] else (2 * k, 2 * k + 1)
            angle = position * base ** (-2 * k / n)
            out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
            out[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
        return out

    def project(self, p, name, x):
        q, kv, t = self.n_head * self.head_dim, self.n_head_kv * self.head_dim, self.t
        if not self.c["fused"]:
            return times(t[p + name + ".weight"], x, t.get(p + name + ".bias"))
        at, end = {"attn_q": (0, q), "attn_k": (q, q + kv), "attn_v": (q + kv, q + 2 * kv)}[name]
        b = t.get(p + "attn_qkv.bias")
        return times(t[p + "attn_qkv.weight"][at:end], x, b and b[at:end])

    def heads(self, p, name, x, position, base):
        y, n = self.project(p, name, x), self.head_dim
        if self.c["qk_norm"] == "wide" and name != "attn_v":
            y = self.norm(p + name + "_norm", y)
        heads = [y[h:h + n] for h in range(0, len(y), n)]
        if name == "attn_v":
            return heads
        if self.c["qk_norm"] == "head":
            heads = [self.norm(p + name + "_norm", h) for h in heads]
        return [self.rotated(h, position, base) for h in heads] if base else heads

    def slope(self, h):
        """Press et al. 2022: for heads that are a power of two in number 2^(-8/n), its square, and so on; else those of the next lower power, and every
        second one of the next higher."""
        low = 2 ** int(math.log2(self.n_head))
        if h < low:
            return 2 ** (-self.c["alibi"] * (h + 1) / low)
        return 2 ** (-self.c["alibi"] / 2 * (2 * (h - low) + 1) / low)

    def attend(self, p, rows, window, base):
        q, k, v = ([self.heads(p, name, x, i, base) for i, x in enumerate(rows)] for name in ("attn_q", "attn_k", "attn_v"))
        out = []
        for i in range(len(rows)):
            y = []
            for h in range(self.n_head):
                seen, kv = [j for j in range(i + 1 if self.c["causal"] else len(rows)) if not window or abs(i - j) <= window // 2], \
                    h * self.n_head_kv // self.n_head
                s = [dot(q[i][h], k[j][kv]) / math.sqrt(self.head_dim) - (self.slope(h) * abs(i - j) if self.c["alibi"] else 0) for j in seen]
                w = [math.exp(a - max(s)) for a in s]
                y += [math.fsum(a * v[j][kv][d] for a, j in zip(w, seen)) / math.fsum(w) for d in range(self.head_dim)]
            out.append(times(self.t[p + "attn_output.weight"], y, self.t.get(p + "attn_output.bias")))
        return out

    def feed(self, p, x):
        t, act = self.t, self.c["act"]
        if p + "ffn_gate_inp.weight" in t:
            return self.experts(p, x)
        up = times(t[p + "ffn_up.weight"], x, t.get(p + "ffn_up.bias"))
        gate = times(t[p + "ffn_gate.weight"], x) if self.c["gate"] == "own" else up[:self.n_ff] if self.c["gate"] else None
        up = up[self.n_ff:] if self.c["gate"] == "fused" else up
        h = [act(a) * b for a, b in zip(gate, up)] if gate else [act(a) for a in up]
        return times(t[p + "ffn_down.weight"], h, t.get(p + "ffn_down.bias"))

    def experts(self, p, x):
        """Those with the largest probabilities, each times its own."""
        t, y = self.t, [0] * self.n_embd
        logits = times(t[p + "ffn_gate_inp.weight"], x)
        share = [math.exp(a - max(logits)) for a in logits]
        for k in sorted(range(len(share)), key=lambda k: -share[k])[:self.c["experts"][1]]:
            h = [self.c["act"](a) for a in times(t[p + "ffn_up_exps.weight"][k], x)]
            y = [a + share[k] / math.fsum(share) * b for a, b in zip(y, times(t[p + "ffn_down_exps.weight"][k], h))]
        return y

    def half(self, p, rows, pre, after, post, f):
        c = self.c
        y = f([self.norm(p + pre, x) for x in rows] if c["pre"] and p + pre + ".weight" in self.t else rows)
        y = [self.norm(p + post, v) for v in y] if c["post"] else y
        before, rows = rows, [add(a, b) for a, b in zip(rows, y)]
        if c["twice"] and after == "attn_output_norm":
            rows, after = [add(self.norm(p + after, a), b) for a, b in zip(rows, before)], "attn_norm_2"
        return [self.norm(p + after, x) for x in rows] if c["after"] else rows

    def hidden(self, ids, n_first=None):
        """[n][n_embd]; tokens from n_first on are of the second type."""
        c, t, rows = self.c, self.t, []
        for i, token in enumerate(ids):
            x = [v * (math.sqrt(self.n_embd) if c["embed_sqrt"] else 1) for v in t["token_embd.weight"][token]]
            if c["types"]:
                x = add(x, t["token_types.weight"][0 if n_first is None or i < n_first else c["types"] - 1])
            x = add(x, t["position_embd.weight"][i]) if c["positions"] else x
            rows.append(self.norm("token_embd_norm", x) if c["embed_norm"] else x)
        for i in range(self.n_layer):
            p, window, base = f"blk.{i}.", (c["windows"] or [0] * 99)[i], (c["bases"] or [0] * 99)[i]
            rows = self.half(p, rows, "attn_norm", "attn_output_norm", "post_attention_norm", lambda r: self.attend(p, r, window, base))
            rows = self.half(p, rows, "ffn_norm", "layer_output_norm", "post_ffw_norm", lambda r: [self.feed(p, x) for x in r])
        return [self.norm(c["out_norm"], x) for x in rows] if c["out_norm"] else rows

    def pooled(self, ids, how, n_first=None):
        rows = self.hidden(ids, n_first)
        return {"cls": rows[0], "last": rows[-1], "mean": [math.fsum(c) / len(rows) for c in zip(*rows)]}[how]

    def embedding(self, ids, how):
        x = self.pooled(ids, how)
        return times(self.t["dense_3.weight"], times(self.t["dense_2.weight"], x)) if self.c["dense"] else x

    def scores(self, ids, n_first=None, how="cls"):
        t, x = self.t, self.pooled(ids, how, n_first)
        if "cls.output.weight" not in t:
            return times(t["cls.weight"], x, t["cls.bias"])
        if "cls.weight" in t:
            x = [self.c["cls_act"](v) for v in times(t["cls.weight"], x, t.get("cls.bias"))]
        if "cls.norm.weight" in t:
            x = self.norm("cls.norm", x)
        x = times(t["cls.output.weight"], x, t.get("cls.output.bias"))
        share = [math.exp(v - max(x)) for v in x]
        return [v / math.fsum(share) for v in share] if self.c["probabilities"] else x

    # ---- the file ----

    def keys(self):
        a, c = self.arch, self.c
        keys = [("general.architecture", g.STRING, a), ("general.name", g.STRING, "tiny"), (a + ".block_count", g.U32, self.n_layer),
                (a + ".context_length", g.U32, self.n_ctx), (a + ".embedding_length", g.U32, self.n_embd), (a + ".feed_forward_length", g.U32, self.n_ff),
                (a + ".attention.head_count", g.U32, self.n_head), (a + ".attention.head_count_kv", g.U32, self.n_head_kv),
                (a + ".attention.causal", g.BOOL, c["causal"]),
                (a + (".attention.layer_norm_epsilon" if c["layer_norm"] else ".attention.layer_norm_rms_epsilon"), g.F32, 1e-5)]
        if self.head_dim * self.n_head != self.n_embd:
            keys += [(a + ".attention.key_length", g.U32, self.head_dim), (a + ".attention.value_length", g.U32, self.head_dim)]
        if c["windows"]:
            keys.append((a + ".attention.sliding_window", g.U32, max(c["windows"])))
        if c["bases"]:
            keys.append((a + ".rope.freq_base", g.F32, max(c["bases"])))
            keys += [(a + ".rope.freq_base_swa", g.F32, min(c["bases"]))] if c["windows"] else []
        if c["types"]:
            keys.append(("tokenizer.ggml.token_type_count", g.U32, c["types"]))
        return keys + [(a + k, kind, v) for k, kind, v in c.get("keys", [])] + self.words.keys()

    def write(self, path, extra=(), without=()):
        tensors = []
        for name, v in self.t.items():
            dims, flat = [len(v)], v
            while isinstance(flat[0], list):
                dims.insert(0, len(flat[0]))
                flat = [x for r in flat for x in r]
            tensors.append((name, dims, 0, struct.pack(f"<{len(flat)}f", *flat)))
        g.write(path, [k for k in self.keys() if k[0] not in without] + list(extra), tensors)
