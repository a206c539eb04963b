"""`tls-certificates`, version 4 of its library. A requirer has {"key", "attributes": [keywords of
CertificateRequestAttributes]} beside the fields of `hook`, one key for the application, and reads
the certificates that answer it; a provider sends "sign", "revoke" or an error, and reads the
requests. "new-key" is a side, too: it reads a new key.
"""

import datetime

from charmlibs.interfaces.tls_certificates import (
    Certificate,
    CertificateError,
    CertificateRequestAttributes,
    Mode,
    PrivateKey,
    ProviderCertificate,
    ProviderCertificateError,
    TLSCertificatesProvidesV4,
    TLSCertificatesRequiresV4,
)

from wire.hook import Side, run

ENDPOINT = "certificates"
YEAR = datetime.timedelta(days=365)


def requirer(charm, name, ask):
    """A requirer with one key for its application."""
    return TLSCertificatesRequiresV4(
        charm,
        name,
        certificate_requests=[
            CertificateRequestAttributes(
                **{
                    key: set(value) if isinstance(value, list) else value
                    for key, value in attributes.items()
                }
            )
            for attributes in ask["attributes"]
        ],
        mode=Mode.APP,
        private_key=PrivateKey.from_string(ask["key"]),
    )


def require(_charm, library, _relation, _send):
    """Asks by itself; reads what was answered."""
    certificates, _ = library.get_assigned_certificates()
    return {
        "certificates": [
            {
                "csr": str(one.certificate_signing_request),
                "certificate": str(one.certificate),
                "ca": str(one.ca),
                "chain": [str(certificate) for certificate in one.chain],
                "revoked": bool(one.revoked),
            }
            for one in certificates
        ],
        "errors": [
            {
                "csr": str(one.certificate_signing_request),
                "code": one.error.code,
                "name": one.error.name,
                "message": one.error.message,
            }
            for one in library.get_request_errors()
        ],
    }


def authority():
    """A self-signed authority."""
    key = PrivateKey.generate()
    attributes = CertificateRequestAttributes(
        common_name="root.example", is_ca=True, add_unique_id_to_subject_name=False
    )
    return Certificate.generate_self_signed_ca(attributes, key, YEAR), key


def provide(_charm, library, relation, send):
    """Answers every request."""
    asked = library.get_certificate_requests(relation.id)
    if send == "sign":
        ca, key = authority()
        for request in asked:
            csr = request.certificate_signing_request
            leaf = csr.sign(ca, key, YEAR, is_ca=request.is_ca)
            library.set_relation_certificate(
                ProviderCertificate(
                    relation_id=relation.id,
                    certificate=leaf,
                    certificate_signing_request=csr,
                    ca=ca,
                    chain=[leaf, ca],
                )
            )
    elif send == "revoke":
        library.revoke_all_certificates()
    elif send is not None:
        for request in asked:
            error = ProviderCertificateError(
                relation_id=relation.id,
                certificate_signing_request=request.certificate_signing_request,
                error=CertificateError(**send),
            )
            library.set_relation_error(error)
    return [
        {
            "csr": str(request.certificate_signing_request),
            "ca": request.is_ca,
            "common_name": request.certificate_signing_request.common_name,
            "sans_dns": sorted(request.certificate_signing_request.sans_dns),
            "sans_ip": sorted(request.certificate_signing_request.sans_ip),
        }
        for request in asked
    ]


SIDES = {
    "requirer": Side(requirer, require),
    "provider": Side(
        lambda charm, name, _: TLSCertificatesProvidesV4(charm, name),
        provide,
    ),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    if ask["side"] == "new-key":
        return {"read": str(PrivateKey.generate()), "error": None, "app": {}, "unit": {}}
    return run(ENDPOINT, "tls-certificates", SIDES[ask["side"]], ask)
