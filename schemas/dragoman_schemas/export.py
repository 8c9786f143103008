"""Export of the JSON Schemas of jobs and results, for tools in other languages.

``python -m dragoman_schemas.export docs/schema``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from dragoman_schemas.jobs import SCHEMA_VERSION, TranslationJob
from dragoman_schemas.results import TranslationResult

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "job": TranslationJob,
    "result": TranslationResult,
}


def json_schemas() -> dict[str, str]:
    """Return the text of each schema by file name, such as ``job.v1.json``."""
    return {f"{name}.v{SCHEMA_VERSION}.json": _text(model) for name, model in _MODELS.items()}


def _text(model: type[BaseModel]) -> str:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(by_alias=True, mode="validation"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    """Write every schema into ``folder``, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in json_schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m dragoman_schemas.export FOLDER")
    main(Path(sys.argv[1]))
