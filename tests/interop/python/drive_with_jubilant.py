"""Drives the `juju` command on PATH with jubilant, as charm authors' integration tests do.

Input: {"model": its name, "charms": {"witness": path, "listener": path}}. Output: what was seen.
"""

import json
import sys

import jubilant

ASK = json.load(sys.stdin)
SEEN = {}

juju = jubilant.Juju(wait_timeout=60)
juju.add_model(ASK["model"])


def wait(ready):
    """Waits as jubilant does by default, only with shorter breaks."""
    return juju.wait(ready, error=jubilant.any_error, delay=0.2)


def heard(words):
    """Whether the listener has heard these words, and all is well."""

    def ready(status):
        message = status.apps["listener"].app_status.message
        return jubilant.all_active(status, "witness", "listener") and words in message

    return ready


juju.deploy(ASK["charms"]["witness"], config={"greeting": "hey"}, trust=True)
juju.deploy(ASK["charms"]["listener"], "listener")
wait(lambda status: jubilant.all_waiting(status, "listener"))
wait(jubilant.all_agents_idle)
juju.integrate("witness:greeting", "listener:source")
wait(heard("heard: hey"))

SEEN["config"] = dict(juju.config("witness"))
juju.config("witness", {"greeting": "a=b, c", "times": 2})
status = wait(heard("heard: a=b, c a=b, c"))
juju.config("witness", reset=["times"])
wait(heard("heard: a=b, c"))

app = status.apps["witness"]
SEEN["status"] = {
    "model": status.model.name,
    "type": status.model.type,
    "base": f"{app.base.name}@{app.base.channel}",
    "charm": app.charm_name,
    "origin": app.charm_origin,
    "relations": {
        endpoint: [related.related_app for related in relations]
        for endpoint, relations in app.relations.items()
    },
    "leader": app.units["witness/0"].leader,
    "agent": app.units["witness/0"].juju_status.current,
}

task = juju.run("witness/leader", "history", {"since": 2})
SEEN["task"] = {
    "status": task.status,
    "code": task.return_code,
    "events": task.results["events"].splitlines(),
    "log": len(task.log),
    "succeeded": task.success,
}
try:
    juju.run("witness/0", "refuse")
except jubilant.TaskError as error:
    SEEN["refused"] = {"message": error.task.message, "reason": error.task.results["reason"]}
try:
    juju.run("witness/0", "no-such-action")
except ValueError as error:
    SEEN["unknown-action"] = "not found" in str(error) or "no-such-action" in str(error)
try:
    juju.config("witness", {"no-such-option": "x"})
except jubilant.CLIError as error:
    SEEN["unknown-option"] = error.stderr.strip()

SEEN["exec"] = juju.exec("is-leader --format=json", unit="witness/0").stdout.strip()
juju.add_unit("witness")
wait(lambda status: len(status.apps["witness"].units) == 2)
wait(lambda status: jubilant.all_active(status, "witness"))
unit = juju.show_unit("listener/0")
SEEN["speakers"] = sorted(
    bag.data["speaker"]
    for info in unit.relation_info
    for bag in info.related_units.values()
    if "speaker" in bag.data
)
SEEN["log"] = "unit.witness/0" in juju.debug_log(limit=500)

juju.remove_relation("witness:greeting", "listener:source")
wait(lambda status: jubilant.all_waiting(status, "listener"))
juju.remove_application("witness", "listener")
wait(lambda status: not status.apps)
juju.destroy_model(ASK["model"], force=True)
json.dump(SEEN, sys.stdout)
