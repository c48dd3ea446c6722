set(ISA_PROCESSOR "x86_64|AMD64")
set(ISA_FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx512vnni -mavx512bf16
    -mamx-tile -mamx-int8 -mamx-bf16)
set(ISA_NEEDS AVX2 FMA F16C AVX512 VNNI BF16 AMX)
set(ISA_RANK 70)
