"""One side of traefik's `ingress`, version 2, run by the library itself.

A question to a requirer: {"role": "requirer", "request": keywords of
IngressPerAppRequirer, "remote_app": {..}}; its answer: {"app", "unit": the databags it writes,
"url": what it reads or null}. To a provider: {"role": "provider", "remote_app": {..}, "remote_unit":
{..}, "publish": url or null}; its answer: {"app": the databag it writes, "ready", "data": what it
reads, "error"}.
"""

import ops
from ops import testing
from single_kernel_opensearch_dashboards.lib.charms.traefik_k8s.v2.ingress import (
    DataValidationError,
    IngressPerAppProvider,
    IngressPerAppRequirer,
)


def run(charm, role, app, relation):
    """Runs one relation-changed hook of a leader."""
    meta = {"name": app, role: {"ingress": {"interface": "ingress"}}}
    context = testing.Context(charm, meta=meta, app_name=app)
    state = testing.State(leader=True, relations={relation}, model=testing.Model(name="lab"))
    after = context.run(context.on.relation_changed(relation, remote_unit=0), state)
    return after.get_relation(relation.id)


def requirer(ask):
    """A workload that wants ingress."""
    seen = {}

    class Requirer(ops.CharmBase):
        """The requirer's charm."""

        def __init__(self, framework):
            super().__init__(framework)
            self.ingress = IngressPerAppRequirer(self, **ask["request"])
            framework.observe(self.on["ingress"].relation_changed, self._changed)

        def _changed(self, _):
            seen["url"] = self.ingress.url

    relation = testing.Relation(
        "ingress", remote_app_name="meshy", remote_app_data=ask["remote_app"]
    )
    after = run(Requirer, "requires", "books", relation)
    return {**seen, "app": dict(after.local_app_data), "unit": dict(after.local_unit_data)}


def provider(ask):
    """A charm that gives ingress."""
    seen = {"data": None, "error": None}

    class Provider(ops.CharmBase):
        """The provider's charm."""

        def __init__(self, framework):
            super().__init__(framework)
            self.ingress = IngressPerAppProvider(self)
            framework.observe(self.on["ingress"].relation_changed, self._changed)

        def _changed(self, event):
            seen["ready"] = self.ingress.is_ready(event.relation)
            try:
                data = self.ingress.get_data(event.relation)
                seen["data"] = {
                    "app": data.app.model_dump(mode="json", by_alias=True),
                    "units": [unit.model_dump(mode="json") for unit in data.units],
                }
            except DataValidationError as error:
                seen["error"] = str(error)
            if ask["publish"]:
                self.ingress.publish_url(event.relation, ask["publish"])

    relation = testing.Relation(
        "ingress",
        remote_app_name="books",
        remote_app_data=ask["remote_app"],
        remote_units_data={0: ask["remote_unit"]},
    )
    after = run(Provider, "provides", "meshy", relation)
    return {**seen, "app": dict(after.local_app_data)}


SIDES = {"requirer": requirer, "provider": provider}


def answer(ask):
    """Answers one question."""
    return SIDES[ask["role"]](ask)
