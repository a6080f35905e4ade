"""Estimators built on a joint: imputation, outlier detection, augmentation."""
