set(ISA_PROCESSOR "aarch64|arm64")
set(ISA_FLAGS -march=armv8-a)
set(ISA_NEEDS NEON)
set(ISA_RANK 20)
