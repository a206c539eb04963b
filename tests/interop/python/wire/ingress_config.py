"""`istio_ingress_config`: a provider (an ingress) sends the keywords of `publish`, or "nobody", and
reads the name; a requirer sends the name and reads what it is asked for.
"""

from canonical_service_mesh.interfaces.istio_ingress_config import (
    IngressConfigProvider,
    IngressConfigRequirer,
)

from wire.hook import Side, run


def provide(_charm, library, _relation, send):
    """Asks for an authorizer."""
    if send == "nobody":
        library.clear()
    elif send is not None:
        library.publish(**send)
    return library.get_ext_authz_provider_name()


def require(_charm, library, relation, send):
    """Gives the authorizer its name."""
    if send is not None:
        library.publish_ext_authz_provider_name(relation, send)
    info = library.get_provider_ext_authz_info(relation)
    if info is None and relation.data[relation.app]:
        raise ValueError("the library has no config though there is one")
    return info and {
        **info.model_dump(mode="json"),
        "ready": library.is_ready(relation),
        "nobody": library.is_fake_authz_config(relation),
    }


def made(library):
    """How both are made."""
    return lambda charm, name, _: library(charm.model.relations, charm.app, name)


SIDES = {
    "provider": Side(made(IngressConfigProvider), provide),
    "requirer": Side(made(IngressConfigRequirer), require),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("istio-ingress-config", "istio_ingress_config", SIDES[ask["side"]], ask)
