"""Notes each event it is given, and says its greeting to whoever listens."""

import ops


class Witness(ops.CharmBase):
    """Keeps its notes in the framework's own state, from hook to hook."""

    _stored = ops.StoredState()

    def __init__(self, framework):
        super().__init__(framework)
        self._stored.set_default(events=[])
        for name, event in self.on.events().items():
            if name.endswith("_action") or name.startswith("collect_"):
                continue
            framework.observe(event, self._note)
        framework.observe(self.on.history_action, self._history)
        framework.observe(self.on.refuse_action, self._refuse)
        framework.observe(self.on.collect_unit_status, self._status)

    def _note(self, event):
        self._stored.events.append(self._words(event))
        self._greet()

    @staticmethod
    def _words(event):
        """The hook, and whom a relation hook is about."""
        name = event.handle.kind.replace("_", "-")
        if not isinstance(event, ops.RelationEvent):
            return name
        who = event.unit or event.app
        return f"{name} {who.name if who else '-'}"

    def _greet(self):
        if not self.unit.is_leader():
            return
        words = " ".join([self.config["greeting"]] * self.config.get("times", 1))
        for relation in self.model.relations["greeting"]:
            relation.data[self.app]["words"] = words
            relation.data[self.unit]["speaker"] = self.unit.name

    def _history(self, event):
        since = event.params["since"]
        event.log(f"leaving out {since}")
        event.set_results({"events": "\n".join(list(self._stored.events)[since:])})

    def _refuse(self, event):
        event.set_results({"reason": "asked to"})
        event.fail("refused")

    def _status(self, event):
        event.add_status(ops.ActiveStatus(f"noted {len(self._stored.events)}"))


if __name__ == "__main__":
    ops.main(Witness)
