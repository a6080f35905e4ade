"""Runtime support: compilation of kernels, threads, random streams, parameter checks, warnings."""
