"""`tracing`, version 2: a requirer sends the protocols it wants and reads {protocol: address}; a
provider sends pairs of protocol and address and reads the protocols.
"""

from charmlibs.interfaces.tracing import TracingEndpointProvider, TracingEndpointRequirer

from wire.hook import Side, run


def require(_charm, library, relation, send):
    """Asks for protocols."""
    if send is not None:
        library.request_protocols(send, relation)
    endpoints = library.get_all_endpoints(relation)
    if not endpoints:
        return None
    return {receiver.protocol.name: receiver.url for receiver in endpoints.receivers}


def provide(_charm, library, relation, send):
    """Tells where traces go."""
    if send is not None:
        library.publish_receivers([tuple(pair) for pair in send])
    if not library.is_requirer_ready(relation) and relation.data[relation.app]:
        raise ValueError("the library has no request though there is one")
    return sorted(library.requested_protocols())


SIDES = {
    "requirer": Side(lambda charm, name, _: TracingEndpointRequirer(charm, name), require),
    "provider": Side(
        lambda charm, name, _: TracingEndpointProvider(charm, relation_name=name), provide
    ),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("workload-tracing", "tracing", SIDES[ask["side"]], ask)
