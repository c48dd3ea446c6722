"""Vocabularies of words of one small letter each, one of each kind that encoders have: a text is such words with a space between them."""
import gguf_file as g

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Words:
    """`special`: control tokens, in front of all others; `roles`: their numbers by what they are for; `ends`: (before, between, behind) of texts; `bare`: a
    text's first word has no space before it."""

    def __init__(self, model, special, types, first, roles, ends, other=(), bare=False):
        self.model, self.types, self.roles, self.other = model, types, roles, list(other)
        self.tokens = special + [first + c for c in LETTERS] + list(LETTERS) + [first]
        self.bare, self.n_special, (self.begin, self.between, self.end) = bare, len(special), ends

    def ids(self, text):
        return [self.n_special + ord(w) - ord("a") + (len(LETTERS) if self.bare and not i else 0) for i, w in enumerate(text.split())]

    def wrapped(self, text):
        return self.begin + self.ids(text) + self.end

    def pair(self, query, document):
        """Ids, and how many of them are of the first part."""
        first = self.begin + self.ids(query) + self.between
        return first + self.ids(document) + self.end, len(first)

    def keys(self):
        n = len(self.tokens) - self.n_special
        return [("tokenizer.ggml.model", g.STRING, self.model), ("tokenizer.ggml.tokens", g.ARRAY, (g.STRING, self.tokens)),
                ("tokenizer.ggml.token_type", g.ARRAY, (g.I32, self.types + [1] * n))] + [
                (f"tokenizer.ggml.{role}_token_id", g.U32, i) for role, i in self.roles.items()] + [("tokenizer.ggml." + k, kind, v) for k, kind, v in self.other]


WORDPIECE = Words("bert", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], [3, 2, 3, 3, 3], "\u2581",
                  dict(padding=0, unknown=1, cls=2, seperator=3, mask=4), ([2], [3], [3]))

# XLM-RoBERTa: <s> text </s>, <s> query </s></s> document </s>.
UNIGRAM = Words("t5", ["<s>", "<pad>", "</s>", "<unk>"], [3, 3, 3, 2], "\u2581",
                dict(bos=0, padding=1, eos=2, unknown=3, seperator=2, cls=0), ([0], [2, 2], [2]),
                [("scores", g.ARRAY, (g.F32, [0.0] * 4 + [-2.0] * 26 + [-3.0] * 27)), ("add_space_prefix", g.BOOL, True),
                 ("add_bos_token", g.BOOL, True), ("add_eos_token", g.BOOL, True),
                 ("remove_extra_whitespaces", g.BOOL, True)])

# Qwen 3 Embedding: text <|endoftext|>.
BYTES = Words("gpt2", ["<|endoftext|>"], [3], "\u0120", dict(eos=0, padding=0), ([], [0], [0]),
              [("merges", g.ARRAY, (g.STRING, ["\u0120 " + c for c in LETTERS])), ("pre", g.STRING, "qwen2"), ("add_eos_token", g.BOOL, True)], bare=True)
