"""`istio_request_auth`: a requirer sends a list of rules; a provider reads them, or null."""

from charmlibs.interfaces.istio_request_auth import (
    IstioRequestAuthProvider,
    IstioRequestAuthRequirer,
    JWTRule,
)

from wire.hook import Side, run


def require(_charm, library, _relation, send):
    """Publishes rules."""
    library.publish_data([JWTRule.model_validate(rule) for rule in send])


def provide(_charm, library, relation, _send):
    """Reads rules."""
    rules = library.get_data().get(relation.app.name)
    return rules and [rule.model_dump(mode="json") for rule in rules]


SIDES = {
    "requirer": Side(lambda charm, name, _: IstioRequestAuthRequirer(charm, name), require),
    "provider": Side(lambda charm, name, _: IstioRequestAuthProvider(charm, name), provide),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("istio-request-auth", "istio_request_auth", SIDES[ask["side"]], ask)
