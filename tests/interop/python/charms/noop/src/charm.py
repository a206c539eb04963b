"""The least that a Python charm for Kubernetes does on each event: it builds its client."""

import lightkube
import ops


class Noop(ops.CharmBase):
    """Reads nothing, writes nothing."""

    def __init__(self, framework):
        super().__init__(framework)
        for event in (self.on.install, self.on.config_changed, self.on.update_status):
            framework.observe(event, self._nothing)

    def _nothing(self, _):
        self.client = lightkube.Client()
        self.unit.status = ops.ActiveStatus()


if __name__ == "__main__":
    ops.main(Noop)
