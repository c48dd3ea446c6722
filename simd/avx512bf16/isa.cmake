# A level without kernels of its own. vdpbf16ps runs at the rate of the fma (Zen 4: 3.2 G/s of 512 bits each, one core) and takes two columns, but a
# float32 activation is three bf16 numbers: 1.5 instructions a column where the fma needs 1, another rounding and no denormals. Two of the three
# parts would only draw level, and one (8 bits) loses what the default promises. The float kernel of AVX-512 reaches the fma's peak already:
# 51 GMAC/s on a BF16 panel. The level is there for its name to be known to --cpu, and it is what AMX builds on.
set(ISA_PROCESSOR "x86_64|AMD64")
set(ISA_FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx512vnni -mavx512bf16)
set(ISA_NEEDS AVX2 FMA F16C AVX512 VNNI BF16)
set(ISA_RANK 60)
