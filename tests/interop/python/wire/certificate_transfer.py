"""`certificate_transfer`, versions 0 and 1: a provider sends certificates; a requirer reads them."""

from charmlibs.interfaces.certificate_transfer import (
    CertificateTransferProvides,
    CertificateTransferRequires,
)

from wire.hook import Side, run


def provide(_charm, library, relation, send):
    """Adds certificates."""
    library.add_certificates(set(send), relation.id)


def require(_charm, library, relation, _send):
    """Reads certificates."""
    return sorted(library.get_all_certificates(relation.id))


SIDES = {
    "provider": Side(lambda charm, name, _: CertificateTransferProvides(charm, name), provide),
    "requirer": Side(lambda charm, name, _: CertificateTransferRequires(charm, name), require),
    # The version is told when the relation appears.
    "created": Side(
        lambda charm, name, _: CertificateTransferRequires(charm, name),
        lambda *_: None,
        event="relation_created",
    ),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    side = SIDES[ask["side"]]
    role = "requirer" if ask["side"] == "created" else ask["side"]
    return run("jwks-ca-cert", "certificate_transfer", side, {**ask, "side": role})
