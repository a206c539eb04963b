"""The same charm in ops-scenario as in a model.

To replay: {"charm": its folder, "hooks": [{"hook", "relation", "unit", "config", "remote":
{relation: {"endpoint", "app", "units": {number: databag}}}, "params"}]}. Answer: the traces after the
last of them: {"unit_status", "app_status", "bags": {relation: {"app", "unit"}}, "secrets":
[{"owner", "label", "content", "granted"}], "deferred": [[event, observer, method]], "stored"},
"results": of actions.

To read what the framework keeps: {"database": its file, "stored": path}. Answer: {"deferred",
"stored"}.
"""

import dataclasses
import importlib.util
import pathlib
import re

import yaml
from ops import testing
from ops.storage import SQLiteStorage

# Juju and ops-scenario each fill these in, with addresses of their own.
ADDRESSES = {"ingress-address", "private-address", "egress-subnets"}


def plain(path):
    """The path of an event without its number."""
    return re.sub(r"\[[0-9]+\]$", "", path)


def kept(ask):
    """What the framework keeps in its file."""
    storage = SQLiteStorage(ask["database"])
    try:
        deferred = [
            [plain(event), observer, method] for event, observer, method in storage.notices(None)
        ]
        return {"deferred": deferred, "stored": storage.load_snapshot(ask["stored"])}
    finally:
        storage.close()


def load(folder):
    """The charm's class and its declarations."""
    spec = importlib.util.spec_from_file_location("beside_charm", folder / "src/charm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    read = lambda name: yaml.safe_load((folder / name).read_text("utf-8"))
    return module.Ledger, {
        "meta": read("metadata.yaml"),
        "config": read("config.yaml"),
        "actions": read("actions.yaml"),
    }


def replay(ask):
    """Runs the hooks, one after the other."""
    charm, declared = load(pathlib.Path(ask["charm"]))
    context = testing.Context(charm, **declared)
    peer = testing.PeerRelation("circle", id=100_000)
    state = testing.State(leader=True, relations={peer}, model=testing.Model(name="lab"))
    results = []
    for hook in ask["hooks"]:
        relations = {relation.id: relation for relation in state.relations}
        for number, remote in hook["remote"].items():
            data = {
                "remote_app_data": remote["app"],
                "remote_units_data": {
                    int(unit): bag for unit, bag in remote["units"].items()
                },
            }
            known = relations.get(int(number))
            relations[int(number)] = (
                dataclasses.replace(known, **data)
                if known
                else testing.Relation(
                    remote["endpoint"], id=int(number), remote_app_name="listener", **data
                )
            )
        state = dataclasses.replace(
            state, relations=set(relations.values()), config=hook["config"]
        )
        state = context.run(event(context, hook, relations), state)
        if "params" in hook:
            results.append({key: str(value) for key, value in context.action_results.items()})
        if hook["hook"].endswith("-relation-broken"):
            gone = relations[hook["relation"]].id
            left = {relation for relation in state.relations if relation.id != gone}
            state = dataclasses.replace(state, relations=left)
    return {**traces(state), "results": results}


def event(context, hook, relations):
    """The event of a hook."""
    name = hook["hook"].replace("-", "_")
    if "params" in hook:
        return context.on.action(hook["hook"], params=hook["params"])
    endpoint = re.fullmatch("(.*)_(relation_[a-z]+)", name)
    if not endpoint:
        return getattr(context.on, name)()
    relation = peer_or(relations, hook)
    about = {}
    if hook["unit"] is not None:
        about["remote_unit"] = hook["unit"]
    if name.endswith("departed"):
        about["departing_unit"] = hook["unit"]
    return getattr(context.on, endpoint[2])(relation, **about)


def peer_or(relations, hook):
    """The relation that a hook is about."""
    if hook["hook"].startswith("circle-"):
        return next(one for one in relations.values() if isinstance(one, testing.PeerRelation))
    return relations[hook["relation"]]


def traces(state):
    """What a state shows of the charm."""
    own = lambda bag: {key: value for key, value in bag.items() if key not in ADDRESSES}
    stored = [one.content for one in state.stored_states if one.owner_path == "Ledger"]
    return {
        "unit_status": [state.unit_status.name, state.unit_status.message],
        "app_status": [state.app_status.name, state.app_status.message],
        "bags": {
            str(relation.id): {
                "app": own(relation.local_app_data),
                "unit": own(relation.local_unit_data),
            }
            for relation in state.relations
            if not isinstance(relation, testing.PeerRelation)
        },
        "secrets": sorted(
            (
                {
                    "owner": secret.owner,
                    "label": secret.label,
                    "content": secret.latest_content,
                    "granted": bool(secret.remote_grants),
                }
                for secret in state.secrets
            ),
            key=lambda secret: secret["label"],
        ),
        "deferred": [[plain(one.handle_path), one.owner, one.observer] for one in state.deferred],
        "stored": dict(stored[0]),
    }


def answer(ask):
    """Answers one question."""
    return kept(ask) if "database" in ask else replay(ask)
