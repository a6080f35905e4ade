"""What every room stands on: how kernels are compiled, checks of arguments, threads, random streams, warnings."""
