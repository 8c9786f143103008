"""Export of the JSON Schemas of jobs and results, and of AsyncAPI, for other languages.

``python -m dragoman_schemas.export docs/schema``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from dragoman_schemas.asyncapi import asyncapi
from dragoman_schemas.jobs import SCHEMA_VERSION, TranslationJob
from dragoman_schemas.results import TranslationResult

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "job": TranslationJob,
    "result": TranslationResult,
}


def json_schemas() -> dict[str, str]:
    """Return the text of each file by name: ``job.v1.json``, ..., ``asyncapi.json``."""
    models = {f"{name}.v{SCHEMA_VERSION}.json": _schema(model) for name, model in _MODELS.items()}
    return {name: _text(value) for name, value in models.items()} | {
        "asyncapi.json": _text(asyncapi(f"{SCHEMA_VERSION}.0.0"))
    }


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, mode="validation")
    if model is TranslationResult:
        # Readers of results ignore unknown members, also of what jobs and results share.
        for shared in schema["$defs"].values():
            shared.pop("additionalProperties", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    """Write every schema into ``folder``, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in json_schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m dragoman_schemas.export FOLDER")
    main(Path(sys.argv[1]))
