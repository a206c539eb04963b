"""`service_mesh`: a requirer sends its policies, by {"kind": "app" | "unit", ..} or whole as
{"kind": "mesh", ..}, and reads {"labels", "mesh_type"}; a provider sends labels and reads the
policies.
"""

import json

from canonical_service_mesh.enums import MeshType
from charmlibs.interfaces.service_mesh import (
    AppPolicy,
    MeshPolicy,
    ServiceMeshConsumer,
    ServiceMeshProvider,
    UnitPolicy,
)

from wire.hook import Side, run

KINDS = {"app": AppPolicy, "unit": UnitPolicy, "mesh": MeshPolicy}
# Whoever is related here is let in by policies that name the endpoint.
OTHERS = [("api", "shelves")]


def policies(ask):
    """The policies of a question, as the library's own objects, and which are whole."""
    made = []
    for policy in ask.get("send") or []:
        fields = {key: value for key, value in policy.items() if key != "kind"}
        made.append(KINDS[policy["kind"]].model_validate(fields))
    whole = [policy for policy in made if isinstance(policy, MeshPolicy)]
    return [policy for policy in made if policy not in whole], whole


def consumer(charm, name, ask):
    """A charm of the mesh; it cannot reach a cluster, where its labels would be set."""
    return ServiceMeshConsumer(
        charm,
        mesh_relation_name=name,
        policies=policies(ask)[0],
        auto_join=False,
    )


def require(charm, library, relation, send):
    """Asks to let others in."""
    if send is not None:
        library.update_service_mesh()
        _, whole = policies({"send": send})
        if whole:
            relation.data[charm.app]["policies"] = json.dumps(
                [policy.model_dump() for policy in whole]
            )
    kind = library.mesh_type()
    return {"labels": library.labels(), "mesh_type": kind and kind.value}


def provide(_charm, library, _relation, _send):
    """Tells what labels are needed."""
    library.update_relations()
    return [policy.model_dump(mode="json") for policy in library.mesh_info()]


SIDES = {
    "requirer": Side(consumer, require),
    "provider": Side(
        lambda charm, name, ask: ServiceMeshProvider(
            charm, ask.get("send") or {}, MeshType.istio, name
        ),
        provide,
    ),
}
CROSS_MODEL = [("provide-cmr-mesh", "elsewhere"), ("require-cmr-mesh", "elsewhere")]


def answer(ask):
    """Answers a question as `hook` has it."""
    others = OTHERS + (CROSS_MODEL if ask["side"] == "requirer" else [])
    return run("service-mesh", "service_mesh", SIDES[ask["side"]], ask, others=others)
