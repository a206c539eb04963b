"""Answers questions to the real charm libraries, as long as somebody asks.

Each line of the input is {"library": module of `wire`, "questions": [..]}; each line of the output
{"answers": [..]} or {"error": text}. What a question and its answer are, the module says.
"""

import importlib
import json
import os
import sys
import traceback

# Nothing but answers goes to the output, whatever a library prints.
OUTPUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

for line in sys.stdin:
    try:
        ask = json.loads(line)
        module = importlib.import_module(f"wire.{ask['library']}")
        said = {"answers": [module.answer(question) for question in ask["questions"]]}
    except Exception:
        said = {"error": traceback.format_exc()}
    print(json.dumps(said), file=OUTPUT, flush=True)
