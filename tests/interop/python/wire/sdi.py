"""One side of a relation of serialized-data-interface, run by the library itself.

A question: {"endpoint", "role": "requires" | "provides", "versions": [..], "remote_app": {..},
"send": {..} | null}. Its answer: {"sent": the databag of the local application, "received":
what the library reads from the remote one, or null, "error": its error, or null}.
"""

import os
import tempfile

import ops
import yaml
from ops import testing
from serialized_data_interface import get_interface

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
PORT = {"type": "integer"}


def document(required, optional):
    """The schema of a document, in the form that charms put into their metadata."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": sorted(required),
    }


ROUTE = {"service": TEXT, "port": PORT, "prefix": TEXT}
SCHEMAS = {
    "ingress": {
        "v1": {"requires": document(ROUTE, {"rewrite": TEXT})},
        "v2": {"requires": document({**ROUTE, "namespace": TEXT}, {"rewrite": TEXT})},
    },
    "ingress-auth": {
        "v1": {
            "requires": document(
                {"service": TEXT, "port": PORT},
                {"allowed-request-headers": TEXTS, "allowed-response-headers": TEXTS},
            )
        },
    },
}


def answer(ask):
    """Answers one question. The library reads its schema from the working directory."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return run(ask)
        finally:
            os.chdir(before)


def run(ask):
    """Runs one relation-changed hook of a leader."""
    endpoint = ask["endpoint"]
    seen = {"received": None, "error": None}

    class Peer(ops.CharmBase):
        """A charm with this one endpoint."""

        def __init__(self, framework):
            super().__init__(framework)
            framework.observe(self.on[endpoint].relation_changed, self._changed)

        def _changed(self, _):
            try:
                interface = get_interface(self, endpoint)
                for (_, app), data in interface.get_data().items():
                    if app is not self.app:
                        seen["received"] = data
                if ask["send"] is not None:
                    interface.send_data(ask["send"])
            except Exception as error:
                seen["error"] = f"{type(error).__name__}: {error}"

    meta = {
        "name": "meshy",
        ask["role"]: {
            endpoint: {
                "interface": endpoint,
                "schema": SCHEMAS[endpoint],
                "versions": ask["versions"],
            }
        },
    }
    with open("metadata.yaml", "w", encoding="utf-8") as file:
        yaml.safe_dump(meta, file)
    relation = testing.Relation(
        endpoint, remote_app_name="books", remote_app_data=ask["remote_app"]
    )
    context = testing.Context(Peer, meta=meta)
    after = context.run(
        context.on.relation_changed(relation, remote_unit=0),
        testing.State(leader=True, relations={relation}),
    )
    seen["sent"] = dict(after.get_relation(relation.id).local_app_data)
    return seen
