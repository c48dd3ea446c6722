set(ISA_PROCESSOR "aarch64|arm64")
set(ISA_FLAGS -march=armv8.2-a+dotprod)
set(ISA_NEEDS NEON DOTPROD)
set(ISA_RANK 30)
