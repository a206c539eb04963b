"""Takes the JSON schema of `charmcraft.yaml` out of Charmcraft's source distribution.

Arguments: the folder that has the distribution as its only file, the file to write.
"""

import pathlib
import sys
import tarfile

(source,) = pathlib.Path(sys.argv[1]).iterdir()
with tarfile.open(source) as archive:
    name = next(name for name in archive.getnames() if name.endswith("/schema/charmcraft.json"))
    pathlib.Path(sys.argv[2]).write_bytes(archive.extractfile(name).read())
