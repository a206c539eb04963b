"""`istio_ingress_route`: a requirer sends {"model", "http_routes", ..} and reads {"host", "tls"}; a
provider sends {"host", "tls"}, or "wiped", and reads the document.
"""

from charmlibs.interfaces.istio_ingress_route import (
    IstioIngressRouteConfig,
    IstioIngressRouteProvider,
    IstioIngressRouteRequirer,
)

from wire.hook import Side, run


def require(_charm, library, _relation, send):
    """Submits routes."""
    if send is not None:
        library.submit_config(IstioIngressRouteConfig.model_validate(send))
    return {"host": library.external_host, "tls": library.tls_enabled}


def provide(_charm, library, relation, send):
    """Tells the address."""
    if send == "wiped":
        library.wipe_ingress_data(relation)
    elif send is not None:
        library.update_ingress_address(external_host=send["host"], tls_enabled=send["tls"])
    config = library.get_config(relation)
    if config is None and library.is_ready(relation):
        raise ValueError("the library has no config though there is one")
    return config and config.model_dump(mode="json")


SIDES = {
    "requirer": Side(lambda charm, name, _: IstioIngressRouteRequirer(charm, name), require),
    "provider": Side(lambda charm, name, _: IstioIngressRouteProvider(charm, name), provide),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("istio-ingress-route", "istio_ingress_route", SIDES[ask["side"]], ask)
