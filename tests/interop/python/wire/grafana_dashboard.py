"""`grafana_dashboard`: a provider sends texts of dashboards; a requirer reads {title: {"charm",
"uid", "content"}}.
"""

from single_kernel_opensearch_dashboards.lib.charms.grafana_k8s.v0.grafana_dashboard import (
    GrafanaDashboardConsumer,
    GrafanaDashboardProvider,
)

from wire.hook import Side, run


def provide(_charm, library, _relation, send):
    """Offers dashboards."""
    for content in send:
        library.add_dashboard(content)


def require(_charm, library, relation, _send):
    """Reads dashboards."""
    library.update_dashboards(relation)
    return {
        one["dashboard_title"]: {
            "charm": one["charm"],
            "uid": one["dashboard_uid"],
            "content": one["content"],
        }
        for one in library.dashboards
    }


SIDES = {
    "provider": Side(lambda charm, name, _: GrafanaDashboardProvider(charm, name), provide),
    "requirer": Side(lambda charm, name, _: GrafanaDashboardConsumer(charm, name), require),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run(
        "grafana-dashboard", "grafana_dashboard", SIDES[ask["side"]], ask, peers="grafana"
    )
