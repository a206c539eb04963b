"""What Charmcraft itself says about a charm's description and its packed files.

Input: {"project": path of a charmcraft.yaml, "schema": path of Charmcraft's JSON schema, "charm":
path of a .charm file}. Output: {"schema": violations, "packed": {file: what is in it},
"generated": {file: what Charmcraft would write}}; files Charmcraft cannot read are errors.
"""

import json
import pathlib
import sys
import zipfile

import jsonschema
import yaml
from charmcraft.models.config import JujuConfig
from charmcraft.models.manifest import Manifest
from charmcraft.models.metadata import CharmMetadata
from charmcraft.models.project import CharmcraftProject

ASK = json.load(sys.stdin)


def violations():
    """Where the description breaks the schema."""
    schema = json.loads(pathlib.Path(ASK["schema"]).read_text())
    project = yaml.safe_load(pathlib.Path(ASK["project"]).read_text())
    found = jsonschema.Draft202012Validator(schema).iter_errors(project)
    return [f"{'/'.join(map(str, error.path))}: {error.message}" for error in found]


def packed():
    """The charm's files, as Charmcraft's models understand them, where it has one."""
    models = {"metadata.yaml": CharmMetadata, "config.yaml": JujuConfig, "manifest.yaml": Manifest}
    found = {}
    with zipfile.ZipFile(ASK["charm"]) as charm:
        for name in charm.namelist():
            if not name.endswith(".yaml"):
                continue
            data = yaml.safe_load(charm.read(name))
            found[name] = models[name].unmarshal(data).marshal() if name in models else data
    return found


def generated():
    """The files that Charmcraft's own pack would write."""
    project = CharmcraftProject.from_yaml_file(pathlib.Path(ASK["project"]))
    found = {"metadata.yaml": CharmMetadata.from_charm(project).marshal()}
    if project.config:
        found["config.yaml"] = JujuConfig.unmarshal(project.config).marshal()
    if project.actions:
        found["actions.yaml"] = project.actions
    return found


answer = {"schema": violations(), "packed": packed(), "generated": generated()}
json.dump(answer, sys.stdout, default=str)
