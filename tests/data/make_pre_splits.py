"""Make pre_splits.txt: texts cut by the published expressions of the pre-tokenizers, with Hugging Face's `tokenizers` (0.23) as the judge.

    python3 tests/data/make_pre_splits.py > tests/data/pre_splits.txt

A line is: name of the pre-tokenizer, the text in hexadecimal UTF-8, the lengths of its words in code points. Other seeds (first argument)
and more texts (second) make a longer test."""
import random
import sys

from tokenizers import Regex, pre_tokenizers

NUMBER = r"\p{N}"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SHORT = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
SPACES = r"\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
ASCII_MARK = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
CJK_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DEEPSEEK_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"


def words(number, short=SHORT + "|", tail=r"[\r\n]*", newlines=r"\s*[\r\n]+|", word=r"\p{L}+", other=r"[^\s\p{L}\p{N}]", spaces=SPACES):
    return rf"{short}[^\r\n\p{{L}}\p{{N}}]?{word}|\p{{N}}{number}| ?{other}+{tail}|{newlines}{spaces}"


def cased(number, short=SHORT + "?", tail=r"[\r\n/]*", upper=f"[{UPPER}]", lower=f"[{LOWER}]", first=""):
    return (rf"{first}[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{short}|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{short}|"
            rf"\p{{N}}{number}| ?[^\s\p{{L}}\p{{N}}]+{tail}|\s*[\r\n]+|{SPACES}")


def punct(tail=r"[\r\n]*", newlines=r"\s*[\r\n]+"):
    return rf"{ASCII_MARK}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+{tail}|{newlines}|{SPACES}"


PASSES = {
    "gpt-2": [GPT2],
    "starcoder": [NUMBER, GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "llama3": [words("{1,3}")],
    "qwen2": [words("")],
    "qwen35": [words("", word=r"[\p{L}\p{M}]+", other=r"[^\s\p{L}\p{M}\p{N}]")],
    "jais-2": [words("{1,3}", spaces="".join(r"\s{%d}(?!\S)|" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"\s{1,2}(?!\S)|\s{1}")],
    "laguna": [r"[^\n]+|[\n]+", words("")],
    "minicpm5": [r"\p{N}{1,3}", words("+")],
    "ufakzeka": [words("", short="")],
    "seed-coder": [words("{1}", tail="", other=r"[^\s\p{L}\p{N}\r\n]")],
    "bailingmoe": [words("", newlines=r"\s*[\r\n]|")],
    "exaone-moe": [words("", tail=r"[\r\n/]?", newlines=r"\s*[\r\n]|", word=r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+")],
    "gpt-4o": [cased("{1,3}")],
    "tekken": [cased("", short="")],
    "kimi-k2": [cased("{1,3}", tail=r"[\r\n]*", upper=rf"[{UPPER}&&[^\p{{Han}}]]", lower=rf"[{LOWER}&&[^\p{{Han}}]]", first=r"[\p{Han}]+|")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", cased("{1,3}")],
    "youtu": ["[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|"
              "[\u3105-\u312f]+|" + CJK_KANA, cased("")],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK, NUMBER],
    "deepseek-v3": [r"\p{N}{1,3}", CJK_KANA, punct()],
    "spark2_5": [r"\p{N}{1,3}", CJK_KANA, punct(tail="", newlines=r"[\r\n]"), NUMBER],
    "bloom": [BLOOM],
    "viking": [BLOOM, NUMBER],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", NUMBER, r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "gemma4": [r"[^\n]+|[\n]+"],
}

ATOMS = ("a|b|Z|s|S|t|re|'s|'S|'t|'ll|'VE|'|don't|\u00e9|\u00df|\u0416|\u0436|\u01c5|\u02b0|\u00aa|\u4e2d|\u6587|\u3005|\u3042|\u30ab|\ud55c|"
         "\uad6d|\u0e01|\u0e48|\u0e2b|\u0928|\u092e|\u0938\u094d|\u0924\u0947|\u05d0|\u05e9|\u0645\u0631\u062d\u0628\u0627|\u060c|\u06d4|\u0964|\u2026|"
         "\u3002|\uff0c|\u3001|\uff01|\u0660|\u0663|\u00b2|\u00bd|\u2163|\u3007|1|2|3|45|678|1234567|0| |  |    |\t|\n|\r|\r\n|\n\n|\u00a0|\u3000|\u2028|"
         "\x85|\x0b|\x0c|\x1c|\x1f|\0|\x01|\u200b|\u200d|\ufeff|\ufffd|\u0301|\u0308|\u20dd|\u0903|\U0001f44d|\U0001f468\u200d\U0001f469|\U0001f1e9|+|=|"
         "<|`|~|^|$|\u20ac|(|)|.|,|!|?|...|--|_|/|//|\\|#|@|IMGIMGABZ|<sentinel:12>|Hello|WORLD|camelCase|x1y2|\ue000|\U0001d518|\U00010400|\u0378|"
         "Word|the|it's|\u1100|\u3105|\u314f|\u201c|\u201d|\u2014").split("|") + ["|"]


def sample(rng):
    n = rng.choice((3, 6, 12))
    atoms = rng.sample(ATOMS, 3) if rng.random() < 0.3 else ATOMS
    return "".join(rng.choice(atoms) for _ in range(n))


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    for name, passes in PASSES.items():
        cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in passes])
        for _ in range(n):
            text = sample(rng)
            print(name, text.encode().hex(), *(len(w) for w, _ in cut.pre_tokenize_str(text)))


if __name__ == "__main__":
    main()
