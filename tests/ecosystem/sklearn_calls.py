"""The 57 scikit-learn calls; SCIPY_ARRAY_API=1 must be set before this module is imported."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn import metrics, preprocessing
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from ecosystem.harness import Calls, normal, positive

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "SYNCS"]


def _x(xp: Any) -> Any:
    return normal(xp, 60, 4)


def _numbers() -> Any:
    x = np.random.default_rng(0).normal(size=(60, 4))
    return x @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).normal(size=60)


def _y(xp: Any) -> Any:
    return xp.asarray(_numbers())


def _classes(xp: Any) -> Any:
    return xp.asarray((_numbers() > 0).astype(np.int64))


def _guess(xp: Any) -> Any:
    return xp.asarray((_numbers() + normal(np, 60, seed=2) > 0).astype(np.int64))


def _probability(xp: Any) -> Any:
    return xp.asarray(1 / (1 + np.exp(-_numbers() - normal(np, 60, seed=2))))


def _transform(estimator: Any) -> Callable[[Any], Any]:
    return lambda xp: clone(estimator).fit(_x(xp)).transform(_x(xp))


def _regress(estimator: Any) -> Callable[[Any], Any]:
    return lambda xp: clone(estimator).fit(_x(xp), _y(xp)).predict(_x(xp))


def _classify(estimator: Any) -> Callable[[Any], Any]:
    return lambda xp: clone(estimator).fit(_x(xp), _classes(xp)).predict(_x(xp))


def _kernel(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda xp: function(positive(xp, 9, 4), positive(xp, 7, 4, seed=1))


def _score(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Score real predictions; strictly positive ones, which logarithms need."""
    return lambda xp: function(positive(xp, 60), positive(xp, 60, seed=1))


def _rate(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda xp: function(_classes(xp), _guess(xp))


def _rank(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda xp: function(_classes(xp), _probability(xp))


def _mixture(xp: Any) -> Any:
    start = normal(np, 2, 4, seed=3)
    model = GaussianMixture(2, init_params="random", means_init=xp.asarray(start), random_state=0)
    return model.fit(_x(xp)).predict(_x(xp))


def _pipeline(xp: Any) -> Any:
    model = make_pipeline(preprocessing.StandardScaler(), Ridge(solver="svd"))
    return model.fit(_x(xp), _y(xp)).predict(_x(xp))


def _grid_search(xp: Any) -> Any:
    search = GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=3, error_score="raise")
    return search.fit(_x(xp), _y(xp)).predict(_x(xp))


def _pickled(xp: Any) -> Any:
    model = Ridge(solver="svd").fit(_x(xp), _y(xp))
    return pickle.loads(pickle.dumps(clone(model).fit(_x(xp), _y(xp)))).predict(_x(xp))


TRANSFORMERS: Calls = {
    "LabelEncoder": lambda xp: preprocessing.LabelEncoder().fit_transform(_classes(xp)),
    "LabelBinarizer": lambda xp: preprocessing.LabelBinarizer().fit_transform(_classes(xp)),
    "StandardScaler": _transform(preprocessing.StandardScaler()),
    "MinMaxScaler": _transform(preprocessing.MinMaxScaler()),
    "MaxAbsScaler": _transform(preprocessing.MaxAbsScaler()),
    "Normalizer": _transform(preprocessing.Normalizer()),
    "Binarizer": _transform(preprocessing.Binarizer()),
    "PolynomialFeatures": _transform(preprocessing.PolynomialFeatures()),
    "KernelCenterer": lambda xp: preprocessing.KernelCenterer().fit_transform(
        pairwise.linear_kernel(_x(xp))
    ),
    "PCA(svd_solver='full')": _transform(PCA(2, svd_solver="full")),
    "PCA(svd_solver='randomized')": _transform(
        PCA(2, svd_solver="randomized", random_state=0, power_iteration_normalizer="QR")
    ),
    "PCA(svd_solver='covariance_eigh')": _transform(PCA(2, svd_solver="covariance_eigh")),
    "Nystroem": _transform(Nystroem(n_components=6, random_state=0)),
}

ESTIMATORS: Calls = {
    "Ridge(solver='svd')": _regress(Ridge(solver="svd")),
    "RidgeCV": _regress(RidgeCV(alphas=(0.1, 1.0))),
    "PoissonRegressor": lambda xp: (
        PoissonRegressor().fit(_x(xp), xp.asarray(np.exp(0.3 * _numbers()))).predict(_x(xp))
    ),
    "LogisticRegression": _classify(LogisticRegression()),
    "LinearDiscriminantAnalysis": _classify(LinearDiscriminantAnalysis()),
    "GaussianNB": _classify(GaussianNB()),
    "GaussianMixture": _mixture,
    "make_pipeline(StandardScaler, Ridge)": _pipeline,
    "GridSearchCV": _grid_search,
    "cross_val_score": lambda xp: cross_val_score(
        Ridge(solver="svd"), _x(xp), _y(xp), cv=3, error_score="raise"
    ),
    "train_test_split": lambda xp: train_test_split(_x(xp), _y(xp), random_state=0),
    "clone and pickle of a fitted Ridge": _pickled,
    "CalibratedClassifierCV": _classify(CalibratedClassifierCV(GaussianNB(), cv=3)),
    "LinearRegression": _regress(LinearRegression()),
    "KMeans": lambda xp: KMeans(2, random_state=0, n_init=1).fit(_x(xp)).cluster_centers_,
    "RandomForestClassifier": _classify(RandomForestClassifier(5, random_state=0)),
}

METRICS: Calls = {
    "confusion_matrix": _rate(metrics.confusion_matrix),
    "accuracy_score": _rate(metrics.accuracy_score),
    "zero_one_loss": _rate(metrics.zero_one_loss),
    "balanced_accuracy_score": _rate(metrics.balanced_accuracy_score),
    "f1_score": _rate(metrics.f1_score),
    "precision_score": _rate(metrics.precision_score),
    "recall_score": _rate(metrics.recall_score),
    "matthews_corrcoef": _rate(metrics.matthews_corrcoef),
    "brier_score_loss": _rank(metrics.brier_score_loss),
    "average_precision_score": _rank(metrics.average_precision_score),
    "log_loss": _rank(metrics.log_loss),
    "roc_curve": _rank(metrics.roc_curve),
    "roc_auc_score": _rank(metrics.roc_auc_score),
    "mean_squared_error": _score(metrics.mean_squared_error),
    "mean_absolute_error": _score(metrics.mean_absolute_error),
    "mean_pinball_loss": _score(metrics.mean_pinball_loss),
    "mean_squared_log_error": _score(metrics.mean_squared_log_error),
    "median_absolute_error": _score(metrics.median_absolute_error),
    "d2_tweedie_score": _score(metrics.d2_tweedie_score),
    "r2_score": _score(metrics.r2_score),
    "explained_variance_score": _score(metrics.explained_variance_score),
}

KERNELS: Calls = {
    "rbf_kernel": _kernel(pairwise.rbf_kernel),
    "linear_kernel": _kernel(pairwise.linear_kernel),
    "polynomial_kernel": _kernel(pairwise.polynomial_kernel),
    "chi2_kernel": _kernel(pairwise.chi2_kernel),
    "euclidean_distances": _kernel(pairwise.euclidean_distances),
    "manhattan_distances": _kernel(pairwise.manhattan_distances),
    "cosine_similarity": _kernel(pairwise.cosine_similarity),
}


def _dispatched(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def dispatched(xp: Any) -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            return call(xp)

    return dispatched


CALLS: Calls = {
    name: _dispatched(call)
    for group in (TRANSFORMERS, ESTIMATORS, METRICS, KERNELS)
    for name, call in group.items()
}

# Expected to fail, and why.
FAILURES = {
    "KMeans": "scikit-learn has no array API support for it, and mixes our arrays with NumPy's",
    "RandomForestClassifier": "scikit-learn has no array API support for it, and takes the arrays "
    "for NumPy's: their buffer, their flags",
    "matthews_corrcoef": "scikit-learn stacks our arrays with NumPy's function, and mixes both",
}
if sys.version_info < (3, 12):
    FAILURES["CalibratedClassifierCV"] = (
        "Cython asks for the buffer protocol, which classes written in Python have from 3.12 on"
    )
FROM_NUMPY = {"cross_val_score"}
# The most sync points that a call may have.
SYNCS = {
    "StandardScaler": 5,
    "MinMaxScaler": 5,
    "MaxAbsScaler": 5,
    "train_test_split": 0,
    "LabelEncoder": 1,
    "confusion_matrix": 2,
}
