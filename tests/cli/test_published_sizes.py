"""Sizes of published models, largest ones included: the keys of each are accepted, and the first tensor is asked for with its shape."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import gguf_file
from gguf_file import ARRAY, BOOL, F32, STRING, U32
import support

MLA = {"attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512, "attention.key_length_mla": 192,
       "attention.value_length_mla": 128, "attention.kv_lora_rank": 512, "rope.dimension_count": 64, "expert_weights_scale": 2.5}


def sizes(layers, width, ff, heads=None, kv=None, **more):
    keys = {"block_count": layers, "embedding_length": width, "feed_forward_length": ff, "context_length": 131072}
    if heads:
        keys["attention.head_count"] = heads
    if kv:
        keys["attention.head_count_kv"] = kv
    return {**keys, **{k.replace("__", "."): v for k, v in more.items()}}


def experts(n, used, ff, **more):
    return {"expert_count": n, "expert_used_count": used, "expert_feed_forward_length": ff, **more}


def heads_of(n):
    return {"attention.key_length": n, "attention.value_length": n}


# Of the models' own configuration files, as converters write them.
PUBLISHED = {
    "Llama 3.1 405B": ("llama", sizes(126, 16384, 53248, 128, 8, rope__freq_base=5e5)),
    "Llama 4 Maverick": ("llama4", {**sizes(48, 5120, 16384, 40, 8), **heads_of(128), **experts(128, 1, 8192, interleave_moe_layer_step=2)}),
    "Mixtral 8x22B": ("llama", {**sizes(56, 6144, 16384, 48, 8), "expert_count": 8, "expert_used_count": 2}),
    "DeepSeek V2 Lite": ("deepseek2", {**sizes(27, 2048, 10944, 16), **MLA, **experts(64, 6, 1408, expert_shared_count=2, leading_dense_block_count=1)}),
    "DeepSeek V3": ("deepseek2", {**sizes(61, 7168, 18432, 128), **MLA, "attention.q_lora_rank": 1536, "expert_gating_func": 2, "expert_group_count": 8,
                                  "expert_group_used_count": 4, **experts(256, 8, 2048, expert_shared_count=1, leading_dense_block_count=3)}),
    "Kimi K2": ("deepseek2", {**sizes(61, 7168, 18432, 64), **MLA, "attention.q_lora_rank": 1536, "expert_gating_func": 2,
                              **experts(384, 8, 2048, expert_shared_count=1, leading_dense_block_count=1)}),
    "Qwen 3 235B A22B": ("qwen3moe", {**sizes(94, 4096, 12288, 64, 4), **heads_of(128), **experts(128, 8, 1536)}),
    "Qwen 3 Next 80B A3B": ("qwen3next", {**sizes(48, 2048, 5120, 16, 2), **heads_of(256), "rope.dimension_count": 64, "ssm.conv_kernel": 4,
                                          "ssm.state_size": 128, "ssm.group_count": 16, "ssm.time_step_rank": 32, "ssm.inner_size": 4096,
                                          **experts(512, 10, 512, expert_shared_feed_forward_length=512)}),
    "gpt-oss 120B": ("gpt-oss", {**sizes(36, 2880, 2880, 64, 8), **heads_of(64), "attention.sliding_window": 128, **experts(128, 4, 2880)}),
    "Gemma 3 27B": ("gemma3", {**sizes(62, 5376, 21504, 32, 16), **heads_of(128), "attention.sliding_window": 1024}),
    "Gemma 3n E4B": ("gemma3n", {**sizes(35, 2048, 16384, 8, 2), **heads_of(256), "attention.sliding_window": 512, "attention.shared_kv_layers": 15,
                                 "embedding_length_per_layer_input": 256}),
    "Gemma 4 31B": ("gemma4", {**sizes(60, 5376, 21504, 32, 16), **heads_of(512), "attention.key_length_swa": 256, "attention.value_length_swa": 256,
                               "attention.sliding_window": 1024, "rope.dimension_count": 512, "rope.dimension_count_swa": 256,
                               "embedding_length_per_layer_input": 0}),
    "GLM 4.5": ("glm4moe", {**sizes(93, 5120, 12288, 96, 8), **heads_of(128), "rope.dimension_count": 64, "nextn_predict_layers": 1, "expert_gating_func": 2,
                            **experts(160, 8, 1536, expert_shared_count=1, leading_dense_block_count=3)}),
    "MiniMax M2": ("minimax-m2", {**sizes(62, 3072, 1536, 48, 8), **heads_of(128), "rope.dimension_count": 64, "expert_gating_func": 2,
                                  **experts(256, 8, 1536)}),
    "Falcon 180B": ("falcon", sizes(80, 14848, 59392, 232, 8)),
    "BLOOM 176B": ("bloom", sizes(70, 14336, 57344, 112)),
    "Command R+": ("command-r", sizes(64, 12288, 33792, 96, 8, logit_scale=0.8333)),
    "Nemotron 340B": ("nemotron", {**sizes(96, 18432, 73728, 96, 8), "rope.dimension_count": 96}),
    "Mistral Large": ("llama", {**sizes(88, 12288, 28672, 96, 8), **heads_of(128), "rope.freq_base": 1e6}),
    "OLMo 2 32B": ("olmo2", sizes(64, 5120, 27648, 40, 8)),
    "Ling 1T": ("bailingmoe2", {**sizes(80, 8192, 18432, 64, 8), **heads_of(128), "rope.dimension_count": 64, "expert_group_count": 8,
                                "expert_group_used_count": 4, "expert_gating_func": 2,
                                **experts(256, 8, 2048, expert_shared_count=1, leading_dense_block_count=4)}),
    "Hunyuan A13B": ("hunyuan-moe", {**sizes(32, 4096, 3072, 32, 8), **heads_of(128), **experts(64, 8, 3072, expert_shared_feed_forward_length=3072)}),
    "ERNIE 4.5 300B": ("ernie4_5-moe", {**sizes(54, 8192, 28672, 64, 8), **heads_of(128), "interleave_moe_layer_step": 1,
                                        **experts(64, 8, 3584, leading_dense_block_count=3)}),
    "DBRX": ("dbrx", {**sizes(40, 6144, 10752, 48, 8), "attention.clamp_kqv": 8.0, "expert_count": 16, "expert_used_count": 4}),
    "Arctic": ("arctic", {**sizes(35, 7168, 4864, 56, 8), "expert_count": 128, "expert_used_count": 2}),
    "Grok 1": ("grok", {**sizes(64, 6144, 32768, 48, 8), **heads_of(128), "expert_count": 8, "expert_used_count": 2}),
    "Phi 3.5 MoE": ("phimoe", {**sizes(32, 4096, 6400, 32, 8), "expert_count": 16, "expert_used_count": 2}),
    "MiniCPM 3 4B": ("minicpm3", {**sizes(62, 2560, 6400, 40, 40), "attention.q_lora_rank": 768, "attention.kv_lora_rank": 256, **heads_of(96),
                                  "rope.dimension_count": 32}),
    "Qwen 3.5 27B": ("qwen35", {**sizes(64, 5120, 17408, 24, 4), **heads_of(256), "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0],
                                "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 16, "ssm.time_step_rank": 48, "ssm.inner_size": 6144}),
    "Falcon H1 34B": ("falcon-h1", {**sizes(72, 5120, 21504, 20, 4), **heads_of(128), "ssm.conv_kernel": 4, "ssm.state_size": 256, "ssm.group_count": 2,
                                    "ssm.time_step_rank": 32, "ssm.inner_size": 4096}),
    "LFM2 8B A1B": ("lfm2moe", {**sizes(24, 2048, 7168, 32), "attention.head_count_kv": [8 if i in (2, 6, 10, 14, 18, 21) else 0 for i in range(24)],
                                "shortconv.l_cache": 3, "expert_gating_func": 2, **experts(32, 4, 1792, leading_dense_block_count=2)}),
    "Mamba 2.8B": ("mamba", {**sizes(64, 2560, 0), "ssm.conv_kernel": 4, "ssm.inner_size": 5120, "ssm.state_size": 16, "ssm.time_step_rank": 160}),
    "Jamba 1.5 Large": ("jamba", {**sizes(72, 8192, 24576, 64), "attention.head_count_kv": [8 if i % 8 == 4 else 0 for i in range(72)], "ssm.conv_kernel": 4,
                                  "ssm.inner_size": 16384, "ssm.state_size": 16, "ssm.time_step_rank": 512, **experts(16, 2, 24576)}),
    "Granite 4 H Small": ("granitehybrid", {**sizes(40, 4096, 768, 32), "attention.head_count_kv": [8 if i in (5, 15, 25, 35) else 0 for i in range(40)],
                                            "ssm.conv_kernel": 4, "ssm.inner_size": 8192, "ssm.state_size": 128, "ssm.time_step_rank": 128,
                                            "ssm.group_count": 1, "logit_scale": 16.0, **experts(72, 10, 768, expert_shared_feed_forward_length=1536)}),
}


def write(path, arch, keys):
    rows = [("general.architecture", STRING, arch), ("tokenizer.ggml.model", STRING, "llama"),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, ["<unk>", "<s>", "</s>", "a"])), ("tokenizer.ggml.scores", ARRAY, (F32, [0.0, 0.0, 0.0, -1.0])),
            ("tokenizer.ggml.token_type", ARRAY, (5, [2, 3, 3, 1]))]
    for norm in "layer_norm_rms_epsilon", "layer_norm_epsilon":
        rows.append((f"{arch}.attention.{norm}", F32, 1e-5))
    for name, v in keys.items():
        kind = ARRAY if isinstance(v, list) else F32 if isinstance(v, float) else BOOL if isinstance(v, bool) else U32
        rows.append((f"{arch}.{name}", kind, (U32, v) if kind == ARRAY else v))
    gguf_file.write(path, rows, [("rope_freqs.weight", (8,), 0, None)])


def test_keys_are_accepted():
    wrong = []
    with gguf_file.Folder() as folder:
        for name, (arch, keys) in PUBLISHED.items():
            write(folder.path("m.gguf"), arch, keys)
            code, _, err = support.quern("logits", "-m", folder.path("m.gguf"), "--ids", "1", "-o", "-", code=None)
            if code != 1 or not re.search(r"tensor token_embd\.weight is missing", err):
                wrong.append(f"{name}: {err.strip()}")
    assert not wrong, "\n  ".join(["", *wrong])


if __name__ == "__main__":
    support.main(globals())
