# Runs the R package arf once: rounds, densities, log-density of all rows, sampling. Prints one JSON object.
# Missing categories are given as a level of their own, as arfpy has them.
suppressMessages(library(arf))
args <- commandArgs(trailingOnly = TRUE)
trees <- as.integer(args[2]); min_leaf <- as.integer(args[3]); n <- as.integer(args[4])
set.seed(as.integer(args[5]))
x <- read.csv(args[1], stringsAsFactors = TRUE, na.strings = "missing level: never")
seconds <- function(work) as.numeric(system.time(work)["elapsed"])
rounds <- seconds(rf <- adversarial_rf(x, num_trees = trees, min_node_size = min_leaf, verbose = FALSE))
densities <- seconds(params <- forde(rf, x))
density <- seconds(loglik <- lik(params, x, arf = rf, log = TRUE))
sampling <- seconds(forge(params, n))
cat(sprintf(
  '\n{"seconds": {"rounds": %f, "densities": %f, "log_density": %f, "sample": %f}, "rounds": %d, "versions": {"arf": "%s"}}\n',
  rounds, densities, density, sampling, length(rf$acc), as.character(packageVersion("arf"))
))
