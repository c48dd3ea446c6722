#include "models/model.h"

extern const qn_arch qn_arch_mamba;
const qn_arch qn_arch_mamba = {
    .name = "mamba",
    .covers = "Mamba 130M to 2.8B, Falcon Mamba 7B",
    .features = QN_F_NO_ROPE,
    .mixer = &qn_mix_selective,
};
