"""`forward_auth`: a provider (an authorizer) tells the keywords of its config when the relation is
"created", and later reads whether its applications may be guarded: "set", or why not; a requirer
sends names of applications and reads the config, or null.
"""

from charmlibs.interfaces.forward_auth import (
    ForwardAuthConfig,
    ForwardAuthProvider,
    ForwardAuthRequirer,
    ForwardAuthRequirerConfig,
)

from wire.hook import Side, run


class Listening(ForwardAuthProvider):
    """A provider that keeps what it is told."""

    def __init__(self, charm, name, config=None):
        super().__init__(charm, name, config and ForwardAuthConfig(**config))
        self.seen = []
        self.framework.observe(self.on.forward_auth_proxy_set, self._set)
        self.framework.observe(self.on.invalid_forward_auth_config, self._invalid)

    def _set(self, _):
        self.seen.append("set")

    def _invalid(self, event):
        self.seen.append(event.error)


def require(_charm, library, relation, send):
    """Names what it gives ingress to."""
    if send is not None:
        library.update_requirer_relation_data(ForwardAuthRequirerConfig(send), relation.id)
    config = library.get_provider_info(relation.id)
    return config and config.to_dict()


SIDES = {
    "created": Side(
        lambda charm, name, ask: Listening(charm, name, ask["send"]),
        lambda *_: None,
        event="relation_created",
    ),
    "provider": Side(
        lambda charm, name, _: Listening(charm, name),
        lambda _charm, library, _relation, _send: library.seen,
    ),
    "requirer": Side(
        lambda charm, name, _: ForwardAuthRequirer(charm, relation_name=name), require
    ),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    side = SIDES[ask["side"]]
    role = "provider" if ask["side"] == "created" else ask["side"]
    return run("forward-auth", "forward_auth", side, {**ask, "side": role})
