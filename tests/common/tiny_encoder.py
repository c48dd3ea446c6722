"""Tiny encoders of random weights with a WordPiece vocabulary, written as GGUF, and what their published descriptions say comes out of them: plain sums
in double precision, nothing shared with the program."""
import math
import random
import struct

import gguf_file as g

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["\u2581" + c for c in "abcdefghijklmnopqrstuvwxyz"] + list("abcdefghijklmnopqrstuvwxyz")
CLS, SEP = 2, 3


def ids_of(text):
    """Words of one small letter each, without special tokens."""
    return [5 + ord(w) - ord("a") for w in text.split()]


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


# What an architecture's blocks are: those of BERT where nothing else is said. `windows`: of each layer, 0: everything; `bases`: of the rotation, likewise.
BERT = dict(layer_norm=True, norm_bias=True, pre=False, after=True, post=False, positions=True, types=2, embed_norm=True, biases=True, ff_bias=True,
            gate=None, act=gelu, bases=None, neox=True, windows=None, alibi=0, qk_norm=False, embed_sqrt=False, out_norm=None, first_norm=True, fused=False)
ARCHS = {"bert": {}}


class Encoder:
    def __init__(self, arch="bert", seed=1, n_embd=32, n_head=2, n_ff=48, n_layer=3, n_ctx=64, labels=0, dense=True, **other):
        self.arch, self.n_embd, self.n_head, self.n_ff, self.n_layer, self.n_ctx, self.labels = arch, n_embd, n_head, n_ff, n_layer, n_ctx, labels
        self.c = {**BERT, **ARCHS[arch], **other}
        self.head_dim = self.c.get("head_dim", n_embd // n_head)
        self.random = random.Random(seed)
        self.t = {}  # name: rows, or a vector
        self.make(dense)

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

    def make(self, dense):
        c, e = self.c, self.n_embd
        self.matrix("token_embd.weight", len(WORDS), e, 1.0)
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
            if dense:
                self.linear("cls", e, e, True)
            self.linear("cls.output", self.labels, e, True)

    def make_layer(self, p, i):
        c, e, q = self.c, self.n_embd, self.n_head * self.head_dim
        if c["pre"] and (i or c["first_norm"]):
            self.norm_of(p + "attn_norm")
        if c["fused"]:
            self.linear(p + "attn_qkv", 3 * q, e, c["biases"])
        else:
            for name in ("attn_q", "attn_k", "attn_v"):
                self.linear(p + name, q, e, c["biases"])
        if c["qk_norm"]:
            for name in ("attn_q_norm", "attn_k_norm"):
                self.norm_of(p + name, self.head_dim)
        self.linear(p + "attn_output", e, q, c["biases"])
        if c["pre"]:
            self.norm_of(p + "ffn_norm")
        if c["gate"] == "own":
            self.linear(p + "ffn_gate", self.n_ff, e, False)
        self.linear(p + "ffn_up", self.n_ff * (2 if c["gate"] == "fused" else 1), e, c["ff_bias"] and not c["gate"])
        self.linear(p + "ffn_down", e, self.n_ff, c["ff_bias"])
        for name in (["attn_output_norm", "layer_output_norm"] if c["after"] else []) + (["post_attention_norm", "post_ffw_norm"] if c["post"] else []):
            self.norm_of(p + name)

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
        q, t = self.n_head * self.head_dim, self.t
        if not self.c["fused"]:
            return times(t[p + name + ".weight"], x, t.get(p + name + ".bias"))
        at = ["attn_q", "attn_k", "attn_v"].index(name) * q
        b = t.get(p + "attn_qkv.bias")
        return times(t[p + "attn_qkv.weight"][at:at + q], x, b and b[at:at + q])

    def heads(self, p, name, x, position, base):
        y, n = self.project(p, name, x), self.head_dim
        heads = [y[h * n:(h + 1) * n] for h in range(self.n_head)]
        if name == "attn_v":
            return heads
        if self.c["qk_norm"]:
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
                seen = [j for j in range(len(rows)) if not window or abs(i - j) <= window // 2]
                s = [dot(q[i][h], k[j][h]) / math.sqrt(self.head_dim) - (self.slope(h) * abs(i - j) if self.c["alibi"] else 0) for j in seen]
                w = [math.exp(a - max(s)) for a in s]
                y += [math.fsum(a * v[j][h][d] for a, j in zip(w, seen)) / math.fsum(w) for d in range(self.head_dim)]
            out.append(times(self.t[p + "attn_output.weight"], y, self.t.get(p + "attn_output.bias")))
        return out

    def feed(self, p, x):
        t, act = self.t, self.c["act"]
        up = times(t[p + "ffn_up.weight"], x, t.get(p + "ffn_up.bias"))
        gate = times(t[p + "ffn_gate.weight"], x) if self.c["gate"] == "own" else up[:self.n_ff] if self.c["gate"] else None
        up = up[self.n_ff:] if self.c["gate"] == "fused" else up
        h = [act(a) * b for a, b in zip(gate, up)] if gate else [act(a) for a in up]
        return times(t[p + "ffn_down.weight"], h, t.get(p + "ffn_down.bias"))

    def half(self, p, rows, pre, after, post, f):
        c = self.c
        y = f([self.norm(p + pre, x) for x in rows] if c["pre"] and p + pre + ".weight" in self.t else rows)
        y = [self.norm(p + post, v) for v in y] if c["post"] else y
        rows = [add(a, b) for a, b in zip(rows, y)]
        return [self.norm(p + after, x) for x in rows] if c["after"] else rows

    def hidden(self, ids, n_first=None):
        """[n][n_embd]; tokens from n_first on are of the second type."""
        c, t, rows = self.c, self.t, []
        for i, token in enumerate(ids):
            x = [v * (math.sqrt(self.n_embd) if c["embed_sqrt"] else 1) for v in t["token_embd.weight"][token]]
            if c["types"]:
                x = add(x, t["token_types.weight"][0 if n_first is None or i < n_first else 1])
            x = add(x, t["position_embd.weight"][i]) if c["positions"] else x
            rows.append(self.norm("token_embd_norm", x) if c["embed_norm"] else x)
        for i in range(self.n_layer):
            p, window, base = f"blk.{i}.", (c["windows"] or [0] * 99)[i], (c["bases"] or [0] * 99)[i]
            rows = self.half(p, rows, "attn_norm", "attn_output_norm", "post_attention_norm", lambda r: self.attend(p, r, window, base))
            rows = self.half(p, rows, "ffn_norm", "layer_output_norm", "post_ffw_norm", lambda r: [self.feed(p, x) for x in r])
        return [self.norm(c["out_norm"], x) for x in rows] if c["out_norm"] else rows

    def scores(self, ids, n_first=None):
        x = self.hidden(ids, n_first)[0]
        if "cls.weight" in self.t:
            x = [math.tanh(v) for v in times(self.t["cls.weight"], x, self.t["cls.bias"])]
        return times(self.t["cls.output.weight"], x, self.t["cls.output.bias"])

    # ---- the file ----

    def keys(self):
        a, c = self.arch, self.c
        keys = [("general.architecture", g.STRING, a), ("general.name", g.STRING, "tiny"), (a + ".block_count", g.U32, self.n_layer),
                (a + ".context_length", g.U32, self.n_ctx), (a + ".embedding_length", g.U32, self.n_embd), (a + ".feed_forward_length", g.U32, self.n_ff),
                (a + ".attention.head_count", g.U32, self.n_head), (a + ".attention.causal", g.BOOL, False),
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
        return keys + [(a + k, kind, v) for k, kind, v in c.get("keys", [])] + [
            ("tokenizer.ggml.model", g.STRING, "bert"), ("tokenizer.ggml.tokens", g.ARRAY, (g.STRING, WORDS)),
            ("tokenizer.ggml.token_type", g.ARRAY, (g.I32, [3, 2, 3, 3, 3] + [1] * (len(WORDS) - 5)))] + [
            (f"tokenizer.ggml.{role}_token_id", g.U32, i) for role, i in (("padding", 0), ("unknown", 1), ("cls", CLS), ("seperator", SEP), ("mask", 4))]

    def write(self, path, extra=(), without=()):
        tensors = []
        for name, v in self.t.items():
            rows = v if isinstance(v[0], list) else [v]
            flat = [x for r in rows for x in r]
            dims = [len(rows[0])] + ([len(rows)] if isinstance(v[0], list) else [])
            tensors.append((name, dims, 0, struct.pack(f"<{len(flat)}f", *flat)))
        g.write(path, [k for k in self.keys() if k[0] not in without] + list(extra), tensors)
