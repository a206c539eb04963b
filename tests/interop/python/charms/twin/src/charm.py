"""The Python half of the comparison: the same charm is written in Rust beside it."""

import ops


class Twin(ops.CharmBase):
    """Recomputes everything on every event, as the other half does."""

    def __init__(self, framework):
        super().__init__(framework)
        for event in (
            self.on.install,
            self.on.start,
            self.on.config_changed,
            self.on.update_status,
            self.on.leader_elected,
            self.on.load_relation_created,
            self.on.load_relation_joined,
            self.on.load_relation_changed,
            self.on.load_relation_departed,
            self.on.load_relation_broken,
        ):
            framework.observe(event, self._reconcile)
        framework.observe(self.on.total_action, self._total)

    def _sum(self):
        units = total = 0
        for relation in self.model.relations["load"]:
            for unit in relation.units:
                units += 1
                total += int(relation.data[unit].get("load", "0"))
        return units, total

    def _reconcile(self, _):
        units, total = self._sum()
        status = ops.ActiveStatus(f"{total} {self.config['unit']} from {units} units")
        if self.unit.is_leader():
            for relation in self.model.relations["load"]:
                relation.data[self.app]["total"] = str(total)
            self.app.status = status
        self.unit.status = status

    def _total(self, event):
        units, total = self._sum()
        event.set_results({"total": str(total * event.params["times"]), "units": str(units)})


if __name__ == "__main__":
    ops.main(Twin)
