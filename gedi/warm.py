"""Going on from what was learnt before: weights, and the clusters by their numbers."""

import torch

from gedi.errors import UserError
from gedi.fitted import Fitted
from gedi.fitting import Prepared
from gedi.methods import has_clusters


def begin_from(prepared: Prepared, before: Fitted) -> None:
    """Put the weights of an earlier model into a training that has not begun; its clusters keep their numbers.

    Points that a kernel density stands on are the new ones. Where the graph proposes clusters, those of the earlier
    model take their place.

    Args:
        prepared: of points like the earlier ones, scaled as they were.
        before: a model of the same settings.
    """
    trainer, model = prepared.trainer, prepared.trainer.model
    own, earlier = model.state_dict(), before.model.state_dict()
    kept = {name: x for name, x in earlier.items() if not (before.density.exact and name.startswith("density."))}
    unlike = [name for name, x in kept.items() if name not in own or own[name].shape != x.shape]
    if unlike:
        raise UserError(
            f"a warm start needs a network like the one before, but {unlike[0]} differs: give the same number of "
            "clusters, columns and encoder, or set warm_start=False"
        )
    model.load_state_dict({**own, **kept})
    trainer.course.keep_heads()
    if trainer.proposed is not None and has_clusters(before.config):
        with torch.no_grad():
            trainer.proposed = before.model.clustered(prepared.data.train[:]).logits.argmax(dim=1)
