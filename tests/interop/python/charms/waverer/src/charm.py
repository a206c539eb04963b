"""Defers until it is told to be ready."""

import ops


class Decided(ops.EventBase):
    """It has made up its mind."""


class Events(ops.CharmEvents):
    """With one event of the charm's own."""

    decided = ops.EventSource(Decided)


class Waverer(ops.CharmBase):
    """Keeps what it handled in the framework's own state."""

    on = Events()
    _stored = ops.StoredState()

    def __init__(self, framework):
        super().__init__(framework)
        self._stored.set_default(handled=[])
        if not self.config["blind"]:
            framework.observe(self.on.update_status, self._update)
        framework.observe(self.on.decided, self._decided)
        framework.observe(self.on.told_action, self._told)

    def _update(self, event):
        if not self.config["ready"]:
            event.defer()
            return
        self._stored.handled.append("update-status")
        self.on.decided.emit()

    def _decided(self, _):
        self._stored.handled.append("decided")

    def _told(self, event):
        notices = self.framework._storage.notices(None)
        kept = [path for path, _, _ in notices if "told_action" not in path]
        handled = ",".join(list(self._stored.handled)) or "nothing"
        event.set_results({"handled": handled, "deferred": str(len(kept))})


if __name__ == "__main__":
    ops.main(Waverer)
