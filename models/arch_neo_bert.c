#include "models/model.h"

static const qn_tensor_row tensors[] = {
    { "enc.output_norm.weight", QN_NET_V(out_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

/* Le Breton et al. 2025. */
extern const qn_arch qn_arch_neo_bert;
const qn_arch qn_arch_neo_bert = {
    .name = "neo-bert",
    .covers = "NeoBERT",
    .features = QN_F_QKV_FUSED | QN_F_GATE_UP_FUSED | QN_F_TIED | QN_F_ENCODER,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
};
