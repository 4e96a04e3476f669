"""Models on the Hugging Face Hub, where the package huggingface_hub is there."""

import tempfile
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.fitted import ABOUT, WEIGHTS

#: The only files that are taken from a hub: none of them can run code.
FILES = (WEIGHTS, ABOUT, "estimator.json", "README.md")


def push(estimator: Any, repository: str, *, private: bool = True, token: str | None = None) -> str:
    """Upload a fitted estimator with its card to ``owner/name``; private unless told otherwise.

    Returns:
        The address of what was written.
    """
    hub = _hub()
    with tempfile.TemporaryDirectory() as folder:
        estimator.save(folder)
        try:
            api = hub.HfApi(token=token)
            api.create_repo(repository, private=private, exist_ok=True)
            return str(api.upload_folder(repo_id=repository, folder_path=folder, allow_patterns=list(FILES)))
        except (OSError, ValueError) as error:  # of the network, of rights, of a name that is none
            raise UserError(f"{repository!r} must be a repository one may write to: {_first(error)}") from None


def pull(repository: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """Download the model in ``owner/name`` and return its folder, for :meth:`gedi.GEDI.load`."""
    hub = _hub()
    try:
        return Path(hub.snapshot_download(repository, revision=revision, token=token, allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:
        raise UserError(f"{repository!r} must be a repository one may read: {_first(error)}") from None


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise UserError("sharing on a hub needs huggingface_hub: pip install 'gedi-learn[hub]'") from None
    return huggingface_hub


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
