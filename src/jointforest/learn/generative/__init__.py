"""Generative forests (Correia et al. 2020): supervised forests that are joints of features and target."""
