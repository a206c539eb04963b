"""One hook of a charm that has one endpoint and one library.

A question is {"side": "provider" | "requirer", "remote_app", "remote_unit", "local_app",
"local_unit": databags, "send": what the library is to tell, or null}; all but the side may be
left out. Its answer is {"app", "unit": the databags of this side after the hook, "read": what the
library makes of the other side, "error": why it refuses it, or null}.
"""

import dataclasses
from typing import Any, Callable

import ops
from ops import testing

ROLES = {"provider": "provides", "requirer": "requires"}
REMOTE, LOCAL, MODEL = "books", "meshy", "lab"


@dataclasses.dataclass(frozen=True)
class Side:
    """How one side's library is made and used."""

    # The library's object, from the charm, its endpoint and the question.
    build: Callable[[ops.CharmBase, str, dict], Any]
    # What it reads, having told what it has to: from the charm, the library, the relation and
    # what to send.
    act: Callable[[ops.CharmBase, Any, ops.Relation, Any], Any]
    # The hook, as it is called on a context's `on`.
    event: str = "relation_changed"


def run(endpoint, interface, side, ask, *, peers=None, others=()):
    """Runs the hook of a leader. `peers` is the name of a peer relation that the charm has, and
    `others` are pairs of an endpoint and the application related to it."""
    seen = {"read": None, "error": None}

    class Peer(ops.CharmBase):
        """The charm."""

        def __init__(self, framework):
            super().__init__(framework)
            self.library = side.build(self, endpoint, ask)
            framework.observe(getattr(self.on[endpoint], side.event), self._heard)

        @property
        def peers(self):
            """Where some libraries keep what they know."""
            return self.model.get_relation(peers)

        def _heard(self, event):
            try:
                seen["read"] = side.act(self, self.library, event.relation, ask.get("send"))
            except Exception as error:
                seen["error"] = f"{type(error).__name__}: {error}"

    meta = {"name": LOCAL, ROLES[ask["side"]]: {endpoint: {"interface": interface}}}
    relations = []
    if peers:
        meta["peers"] = {peers: {"interface": "peers"}}
        relations.append(testing.PeerRelation(peers))
    for other, app in others:
        meta.setdefault("provides", {})[other] = {"interface": other}
        relations.append(testing.Relation(other, remote_app_name=app))
    relation = testing.Relation(
        endpoint,
        remote_app_name=REMOTE,
        remote_app_data=ask.get("remote_app", {}),
        remote_units_data={0: ask.get("remote_unit", {})},
        local_app_data=ask.get("local_app", {}),
        **({"local_unit_data": ask["local_unit"]} if ask.get("local_unit") else {}),
    )
    context = testing.Context(Peer, meta=meta, app_name=LOCAL)
    state = testing.State(
        leader=True, relations={relation, *relations}, model=testing.Model(name=MODEL)
    )
    remote = {"remote_unit": 0} if side.event == "relation_changed" else {}
    try:
        event = getattr(context.on, side.event)(relation, **remote)
        after = context.run(event, state).get_relation(relation.id)
    except Exception as error:
        seen["error"] = seen["error"] or f"{type(error).__name__}: {error}"
        after = relation
    return {**seen, "app": dict(after.local_app_data), "unit": dict(after.local_unit_data)}
