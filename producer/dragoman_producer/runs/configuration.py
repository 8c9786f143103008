"""Files that are configuration by name or place: read by programs, in formats that also hold texts.

A run over a folder leaves them alone; one that is named as a path is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from pathlib import PurePosixPath
from typing import Final

CONFIGURATION: Final = "configuration"
"""Reason of a file that is not read because its name or its place is in a table."""

_NAMES: Final = """
    package.json package-lock.json npm-shrinkwrap.json packages.lock.json composer.json bower.json
    pnpm-lock.yaml pnpm-workspace.yaml deno.json deno.jsonc deno.lock.json jsr.json lerna.json
    nx.json project.json turbo.json rush.json angular.json nest-cli.json vcpkg.json global.json
    tsconfig.json tsconfig.*.json jsconfig.json tslint.json eslint*.json stylelint*.json biome.json
    biome.jsonc prettier*.json babel.config.json jest.config.json cypress.json nodemon.json
    typedoc.json api-extractor.json components.json vercel.json now.json firebase.json
    firestore.indexes.json wrangler.json wrangler.jsonc renovate.json appsettings.json
    appsettings.*.json launchsettings.json cmakepresets.json compile_commands.json
    mkdocs.yml mkdocs.yaml mkdocs.*.yml _config.yml _config.yaml _config.*.yml _quarto.yml
    _quarto.yaml _quarto-*.yml myst.yml _toc.yml antora.yml antora-playbook.yml hugo.yaml hugo.yml
    hugo.json mint.json zensical.yml crowdin.yml crowdin.yaml l10n.yaml i18n.json
    docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml chart.yaml kustomization.yaml
    kustomization.yml skaffold.yaml serverless.yml action.yml action.yaml codecov.yml appveyor.yml
    azure-pipelines*.yml bitbucket-pipelines.yml buildspec.yml cloudbuild.yaml jitpack.yml
    readthedocs.yml readthedocs.yaml dependabot.yml lefthook.yml taskfile.yml taskfile.yaml
    environment.yml conda-lock.yml pubspec.yaml analysis_options.yaml stack.yaml
    gradle.properties gradle-wrapper.properties maven-wrapper.properties local.properties
    sonar-project.properties log4j*.properties logging.properties
    requirements.txt requirements-*.txt requirements_*.txt constraints.txt cmakelists.txt
    robots.txt ads.txt *.podspec.json google-services.json output-metadata.json
"""
"""Patterns of names in lower case."""
_NAMED: Final = re.compile("|".join(map(translate, _NAMES.split())))
_PLACES: Final = """
    *.xcassets/contents.json *.xcassets/*/contents.json *.icon/icon.json
    */schemas/*.*/[0-9]*.json
"""
"""Patterns of paths in lower case, where only the folder tells what a file is: Xcode's catalogs of
images and colors, and the SQL of Android's databases."""
_PLACED: Final = re.compile("|".join(map(translate, _PLACES.split())))
_KEYS: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
    ("_category_.json", "_category_.yml", "_category_.yaml"),
    ("label", "link.title", "link.description"),
)
"""Of files that hold both, the paths of their texts."""


def is_configuration(path: str) -> bool:
    """Return whether a file is configuration by its name, or by the folder that it is in."""
    lowered = PurePosixPath(path.lower())
    return bool(_NAMED.match(lowered.name) or _PLACED.match(str(lowered)))


def keys_of(path: str) -> tuple[str, ...]:
    """Return the paths of the texts in a file that is known by its name; none: any may be text."""
    return _KEYS.get(PurePosixPath(path).name.lower(), ())
