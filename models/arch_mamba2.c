#include "models/model.h"

extern const qn_arch qn_arch_mamba2;
const qn_arch qn_arch_mamba2 = {
    .name = "mamba2",
    .covers = "Mamba 2 130M to 2.7B, Codestral Mamba 7B",
    .features = QN_F_NO_ROPE,
    .mixer = &qn_mix_ssm,
};
