"""`istio_metadata`: a provider sends the root namespace; a requirer reads it, or null."""

from charmlibs.interfaces.istio_metadata import IstioMetadataProvider, IstioMetadataRequirer

from wire.hook import Side, run


def provide(_charm, library, _relation, send):
    """Publishes the namespace."""
    library.publish(root_namespace=send)


def require(_charm, library, _relation, _send):
    """Reads the namespace."""
    data = library.get_data()
    return data and data.root_namespace


SIDES = {
    "provider": Side(
        lambda charm, name, _: IstioMetadataProvider(
            charm, charm.model.relations, charm.app, name
        ),
        provide,
    ),
    "requirer": Side(
        lambda charm, name, _: IstioMetadataRequirer(charm.model.relations, name), require
    ),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("istio-metadata", "istio_metadata", SIDES[ask["side"]], ask)
