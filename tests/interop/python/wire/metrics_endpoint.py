"""`prometheus_scrape`: a provider sends jobs; a requirer reads {"jobs", "alerts"}."""

from single_kernel_opensearch_dashboards.lib.charms.prometheus_k8s.v0.prometheus_scrape import (
    MetricsEndpointConsumer,
    MetricsEndpointProvider,
)

from wire.hook import Side, run


def provide(_charm, library, _relation, send):
    """Tells what to scrape."""
    library.update_scrape_job_spec(send)


def require(_charm, library, _relation, _send):
    """Reads what to scrape."""
    return {"jobs": library.jobs(), "alerts": library.alerts}


SIDES = {
    "provider": Side(lambda charm, name, _: MetricsEndpointProvider(charm, name), provide),
    "requirer": Side(lambda charm, name, _: MetricsEndpointConsumer(charm, name), require),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("metrics-endpoint", "prometheus_scrape", SIDES[ask["side"]], ask)
