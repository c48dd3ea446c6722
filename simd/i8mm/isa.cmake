set(ISA_PROCESSOR "aarch64|arm64")
set(ISA_FLAGS -march=armv8.2-a+dotprod+i8mm)
set(ISA_NEEDS NEON DOTPROD I8MM)
set(ISA_RANK 40)
