"""`cross_model_mesh`: a requirer says what it is called in its own model; a provider reads that."""

from charmlibs.interfaces.service_mesh import ServiceMeshConsumer
from charmlibs.interfaces.service_mesh._service_mesh import get_data_from_cmr_relation

from wire.hook import Side, run

OTHERS = {
    "requirer": [("provide-cmr-mesh", "elsewhere"), ("service-mesh", "mesh")],
    "provider": [],
}
NAMES = {"requirer": "require-cmr-mesh", "provider": "provide-cmr-mesh"}


def require(_charm, _library, _relation, _send):
    """The library has told by itself."""


def provide(_charm, _library, relation, _send):
    """Reads who the other side is."""
    told = get_data_from_cmr_relation([relation]).get(relation.app.name)
    if told is None and "cmr_data" in relation.data[relation.app]:
        raise ValueError("the library has no data though there are some")
    return told and told.model_dump(mode="json")


SIDES = {
    "requirer": Side(
        lambda charm, _name, _ask: ServiceMeshConsumer(charm, auto_join=False),
        require,
        event="relation_created",
    ),
    "provider": Side(lambda _charm, _name, _ask: None, provide),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    side = ask["side"]
    return run(NAMES[side], "cross_model_mesh", SIDES[side], ask, others=OTHERS[side])
