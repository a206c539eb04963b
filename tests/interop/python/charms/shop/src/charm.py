"""A workload on the libraries that Python charms of the mesh use."""

import datetime
import json

import ops
from canonical_service_mesh.enums import Method
from charmlibs.interfaces.gateway_metadata import GatewayMetadataRequirer
from charmlibs.interfaces.istio_ingress_route import (
    BackendRef,
    HTTPMethod,
    HTTPPathMatch,
    HTTPPathMatchType,
    HTTPRoute,
    HTTPRouteMatch,
    IstioIngressRouteConfig,
    IstioIngressRouteRequirer,
    Listener,
    ProtocolType,
)
from charmlibs.interfaces.service_mesh import AppPolicy, Endpoint, ServiceMeshConsumer
from charmlibs.interfaces.tls_certificates import (
    Certificate,
    CertificateRequestAttributes,
    PrivateKey,
    ProviderCertificate,
    TLSCertificatesProvidesV4,
)
from single_kernel_opensearch_dashboards.lib.charms.traefik_k8s.v2.ingress import (
    IngressPerAppRequirer,
)

YEAR = datetime.timedelta(days=365)


class Shop(ops.CharmBase):
    """Uses each library as its documentation shows it."""

    def __init__(self, framework):
        super().__init__(framework)
        host = f"{self.app.name}.{self.model.name}.svc.cluster.local"
        self.ingress = IngressPerAppRequirer(self, port=8080, host=host, strip_prefix=True)
        self.route = IstioIngressRouteRequirer(self, relation_name="route")
        self.gateway = GatewayMetadataRequirer(self)
        self.mesh = ServiceMeshConsumer(
            self,
            policies=[
                AppPolicy(
                    relation="api",
                    endpoints=[Endpoint(ports=[8080], methods=[Method.get], paths=["/stock/*"])],
                )
            ],
            auto_join=False,
        )
        self.certificates = TLSCertificatesProvidesV4(self, "certificates")
        framework.observe(self.on["route"].relation_created, self._submit)
        framework.observe(self.on["certificates"].relation_changed, self._sign)
        framework.observe(self.on.seen_action, self._seen)
        framework.observe(self.on.collect_unit_status, self._status)

    def _submit(self, _):
        listener = Listener(port=80, protocol=ProtocolType.HTTP)
        path = HTTPPathMatch(type=HTTPPathMatchType.PathPrefix, value="/books")
        match = HTTPRouteMatch(path=path, method=HTTPMethod.GET, headers={"X-Team": "blue"})
        backends = [BackendRef(service=self.app.name, port=8080)]
        route = HTTPRoute(name="books", listener=listener, matches=[match], backends=backends)
        self.route.submit_config(
            IstioIngressRouteConfig(
                model=self.model.name, listeners=[listener], http_routes=[route]
            )
        )

    def _sign(self, event):
        key = PrivateKey.generate()
        attributes = CertificateRequestAttributes(common_name="lab root", is_ca=True)
        root = Certificate.generate_self_signed_ca(attributes, key, YEAR)
        for request in self.certificates.get_outstanding_certificate_requests(event.relation.id):
            csr = request.certificate_signing_request
            leaf = csr.sign(root, key, YEAR, is_ca=request.is_ca)
            self.certificates.set_relation_certificate(
                ProviderCertificate(
                    relation_id=event.relation.id,
                    certificate=leaf,
                    certificate_signing_request=csr,
                    ca=root,
                    chain=[leaf, root],
                )
            )

    def _seen(self, event):
        metadata = self.gateway.get_metadata()
        issued = self.certificates.get_issued_certificates()
        seen = {
            "url": self.ingress.url,
            "host": self.route.external_host,
            "tls": self.route.tls_enabled,
            "gateway": metadata and metadata.model_dump(),
            "labels": self.mesh.labels(),
            "names": [sorted(one.certificate.sans_dns or []) for one in issued],
            "certificates": [str(one.certificate) for one in issued],
        }
        event.set_results({"seen": json.dumps(seen)})

    def _status(self, event):
        event.add_status(ops.ActiveStatus())


if __name__ == "__main__":
    ops.main(Shop)
