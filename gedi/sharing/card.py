"""The model card: what a stranger should know of a model before using it."""

import json
from pathlib import Path
from typing import Any

from gedi.checkpoints import write_whole
from gedi.config import to_yaml
from gedi.data.values import listed

_FIGURES = ("nmi", "ami", "ari", "accuracy", "clusters_used", "mean_confidence", "information_kept", "sample_1nn")


def write_card(estimator: Any, folder: Path) -> Path:
    """Write ``README.md`` beside a model: the verdict, figures, settings, the data's fingerprint, versions."""
    path = folder / "README.md"
    write_whole(path, card(estimator).encode())
    return path


def card(estimator: Any) -> str:
    """The card of a fitted estimator, as Markdown with the front matter that hubs read."""
    fitted, results = estimator.fitted_, estimator.results_
    verdict = fitted.verdict or {"word": "not judged", "why": []}
    kind = "images" if len(fitted.shape) == 3 else "rows"
    names = getattr(estimator, "feature_names_in_", None)
    lines = [
        "---",
        "library_name: gedi",
        "tags: [clustering, density-estimation, outlier-detection, self-supervised]",
        "---",
        f"# {fitted.clusters} clusters and a density of {kind}",
        "",
        "Learnt without labels by [GEDI](https://pypi.org/project/gedi-learn).",
        "",
        "```python",
        "from gedi import GEDI",
        "",
        'model = GEDI.load("this folder")',
        "model.predict(X), model.score_samples(X), model.sample(10)",
        "```",
        "",
        f"**{verdict['word']}** (found without labels).",
        *(f"- {reason}" for reason in verdict["why"]),
        "",
        "| | |",
        "|---|---|",
        f"| input | {kind} of shape {tuple(fitted.shape)} |",
        *([] if names is None else [f"| columns | {listed([str(name) for name in names], most=20)} |"]),
        f"| clusters | {fitted.clusters} |",
        *_figures(results),
        *_data(results),
        *(f"| {name} | {version} |" for name, version in results.get("versions", {}).items()),
        "",
        "## Settings",
        "```yaml",
        to_yaml(fitted.config).rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _figures(results: dict[str, Any]) -> list[str]:
    metrics = results.get("metrics", {})
    rows = [f"| {name} | {metrics[name]:.4g} |" for name in _FIGURES if name in metrics]
    seconds = results.get("seconds", {}).get("total")
    return rows + ([f"| seconds | {seconds:.1f} |"] if seconds is not None else [])


def _data(results: dict[str, Any]) -> list[str]:
    held = (results.get("fingerprint") or {}).get("train")
    if held is None:
        return []
    return [f"| training points | {json.dumps(held['shape'])} |", f"| their digest | `{held['digest']}` |"]
