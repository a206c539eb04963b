"""Keeps an account of what it is told."""

import json

import ops


class Ledger(ops.CharmBase):
    """Leaves traces of every kind that a charm on `ops` can leave."""

    _stored = ops.StoredState()

    def __init__(self, framework):
        super().__init__(framework)
        self._stored.set_default(seen=[], entries={})
        entry = self.on["entry"]
        for event in (self.on.install, self.on.start, self.on.update_status):
            framework.observe(event, self._note)
        framework.observe(self.on.config_changed, self._configured)
        framework.observe(entry.relation_created, self._opened)
        framework.observe(entry.relation_joined, self._note)
        framework.observe(entry.relation_changed, self._entered)
        framework.observe(entry.relation_departed, self._note)
        framework.observe(entry.relation_broken, self._closed)
        framework.observe(self.on.total_action, self._total)
        framework.observe(self.on.collect_unit_status, self._unit_status)
        framework.observe(self.on.collect_app_status, self._app_status)

    def _note(self, event):
        self._stored.seen.append(event.handle.kind)

    def _configured(self, event):
        self._note(event)
        for relation in self.model.relations["entry"]:
            secret = self.model.get_secret(label=f"seal-{relation.id}")
            if secret.peek_content()["ink"] != self.config["ink"]:
                secret.set_content({"ink": self.config["ink"], "odd": '1e3 *a\n"ü"'})

    def _opened(self, event):
        self._note(event)
        content = {"ink": self.config["ink"], "odd": "first"}
        secret = self.app.add_secret(content, label=f"seal-{event.relation.id}")
        secret.grant(event.relation)
        event.relation.data[self.app]["seal"] = secret.id
        event.relation.data[self.unit]["clerk"] = self.unit.name
        self.unit.add_secret({"key": "unit"}, label="own", description="nobody else's")

    def _entered(self, event):
        if not self.config["ready"]:
            event.defer()
            return
        self._note(event)
        words = {}
        for unit in sorted(event.relation.units, key=lambda unit: unit.name):
            words[unit.name] = event.relation.data[unit].get("word", "")
        self._stored.entries[str(event.relation.id)] = json.dumps(words)
        event.relation.data[self.app]["words"] = json.dumps(words)
        event.relation.data[self.unit].update({"empty": "", "odd": "a=b, 1e3\n'ü'"})

    def _closed(self, event):
        self._note(event)
        self._stored.entries.pop(str(event.relation.id), None)
        for label in (f"seal-{event.relation.id}", "own"):
            self.model.get_secret(label=label).remove_all_revisions()

    def _total(self, event):
        event.log("adding up")
        event.set_results({"total": len(self._stored.entries) * event.params["times"]})

    def _unit_status(self, event):
        if not self.config["ready"]:
            event.add_status(ops.WaitingStatus("no pen: 'ü' \"1e3\""))
        event.add_status(ops.ActiveStatus(f"{len(self._stored.entries)} entries"))

    def _app_status(self, event):
        event.add_status(ops.MaintenanceStatus(f"{len(self._stored.seen)} events"))


if __name__ == "__main__":
    ops.main(Ledger)
