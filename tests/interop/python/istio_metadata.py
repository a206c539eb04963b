"""One side of `istio_metadata`, run by the library itself.

Input: {"role": "provider", "root_namespace"} or {"role": "requirer", "remote_app": {..}}.
Output: {"app": the databag it writes} or {"root_namespace": what it reads, or null}.
"""

import json
import sys

import ops
from charmlibs.interfaces.istio_metadata import IstioMetadataProvider, IstioMetadataRequirer
from ops import testing

ENDPOINT = "istio-metadata"
ASK = json.load(sys.stdin)
SEEN = {}


class Peer(ops.CharmBase):
    """A charm with this one endpoint."""

    def __init__(self, framework):
        super().__init__(framework)
        framework.observe(self.on[ENDPOINT].relation_changed, self._changed)

    def _changed(self, _):
        relations = self.model.relations
        if ASK["role"] == "provider":
            provider = IstioMetadataProvider(self, relations, self.app, ENDPOINT)
            provider.publish(root_namespace=ASK["root_namespace"])
        else:
            data = IstioMetadataRequirer(relations, ENDPOINT).get_data()
            SEEN["root_namespace"] = data.root_namespace if data else None


role = "provides" if ASK["role"] == "provider" else "requires"
context = testing.Context(
    Peer, meta={"name": "meshy", role: {ENDPOINT: {"interface": "istio_metadata"}}}
)
relation = testing.Relation(ENDPOINT, remote_app_data=ASK.get("remote_app", {}))
after = context.run(
    context.on.relation_changed(relation), testing.State(leader=True, relations={relation})
)
SEEN["app"] = dict(after.get_relation(relation.id).local_app_data)
json.dump(SEEN, sys.stdout)
