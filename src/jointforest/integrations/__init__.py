"""Other libraries: tree ensembles, Arrow, FORDE, MLflow, Dask."""
