"""Profile whose prompt is made of templates from a file (prompts/profile_file.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_worker.errors import Internal
from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, PromptInput, Rendering, Steering
from dragoman_worker.prompts.chat import remedies
from dragoman_worker.prompts.cleaning import cleaned
from dragoman_worker.prompts.templates import PromptTemplate, Rendered, TemplateFault

VARIABLES: Final = (
    *("source", "target", "source_lang", "target_lang", "text", "context", "terms"),
    *("do_not_translate", "formality", "instructions"),
)
_SAMPLE_TEXT: Final = "Good morning!"
_SAMPLE_PARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "context": ("At breakfast.",),
        "terms": ("morning", "Morgen"),
        "do_not_translate": ("Good",),
        "instructions": ("Be brief.", "Be kind."),
    }
)
_MOST_COPIES: Final = 4
"""More copies of a text of 128 KiB would fit no context."""


@dataclass(frozen=True, slots=True)
class CleanRules:
    """What is removed from an output: general wrappers, all up to `after`, all from `before`."""

    general: bool = True
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class CustomProfile:
    """A profile that a user wrote: chat messages or a completion, from templates."""

    name: str
    models: str
    licence: str
    takes: frozenset[Steering]
    needs_source: bool
    languages: frozenset[str] | None
    sampling: ProfileSampling
    max_source_tokens: int | None
    max_source_sentences: int | None
    system: PromptTemplate | None
    user: PromptTemplate
    completion: bool
    add_bos: bool
    language_names: Mapping[str, str]
    template_options: Mapping[str, object]
    rules: CleanRules
    identity: str
    """Name and hash of the file. The adapter's files belong to the identity of the engine."""

    def render(self, segment: PromptInput) -> Rendering:
        """Render the templates. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        try:
            return Rendering(self._prompt(segment), steering.warnings(self, segment))
        except TemplateFault as fault:
            raise Internal(f"profile {self.name}: its template failed: {fault}") from fault

    def clean(self, text: str, source: str | None = None) -> str:
        """Cut the answer out by the file's marks, then remove what surrounds it in general.

        A mark that the source has too is not looked for.
        """
        rules, given = self.rules, source or ""
        if rules.after is not None and rules.after not in given:
            text = text.rpartition(rules.after)[2]
        if rules.before is not None and rules.before not in given:
            text = text.partition(rules.before)[0]
        return cleaned(text, source) if rules.general else text.strip()

    def _prompt(self, segment: PromptInput) -> Prompt:
        user = self.part(self.user, segment)
        if self.completion:
            return Prompt(
                completion=user.text,
                add_special_tokens=self.add_bos,
                user_spans=user.user_spans,
            )
        messages = [Message("user", user.text, user.user_spans)]
        if self.system is not None:
            system = self.part(self.system, segment)
            messages.insert(0, Message("system", system.text, system.user_spans))
        return Prompt(
            messages=tuple(messages),
            template_options=self.template_options,
        )

    def part(self, template: PromptTemplate, segment: PromptInput) -> Rendered:
        """Render one of the templates. Raises TemplateFault."""
        plain = {
            "source": self._name(segment.source_lang),
            "target": self._name(segment.target_lang),
            "source_lang": segment.source_lang or "",
            "target_lang": segment.target_lang,
            "formality": steering.register(segment) or "",
        }
        users = {
            "text": segment.text,
            "context": (segment.context or "").strip(),
            "terms": list(segment.glossary.items()),
            "do_not_translate": list(steering.untranslated(segment)),
            "instructions": [*segment.instructions, *remedies(segment)],
        }
        return template.render(plain, users)

    def _name(self, tag: str | None) -> str:
        if tag is None:
            return ""
        given = self.language_names
        return given.get(tag) or given.get(names.base_of(tag)) or names.distinct_name(tag)


def rendered_sample(profile: CustomProfile) -> None:
    """Render with all and with nothing given. Raises TemplateFault, which names the key."""
    tags = sorted(profile.languages or ("de", "en"))
    plain = PromptInput(_SAMPLE_TEXT, tags[0], tags[-1] if profile.needs_source else None)
    full = PromptInput(
        _SAMPLE_TEXT,
        tags[0],
        tags[-1],
        context="At breakfast.",
        glossary={"morning": "Morgen"},
        do_not_translate=("Good",),
        formality="more",
        instructions=("Be brief.", "Be kind."),
    )
    for key, template in (("system", profile.system), ("user", profile.user)):
        if template is None:
            continue
        for segment in (plain, full):
            try:
                text = profile.part(template, segment).text
            except TemplateFault as fault:
                raise TemplateFault(f"{key}: {fault}") from None
            if key == "user" and not 1 <= text.count(_SAMPLE_TEXT) <= _MOST_COPIES:
                raise TemplateFault(
                    f"user: has the text {text.count(_SAMPLE_TEXT)} times; put {{{{ text }}}} into "
                    "it once"
                )
        _require_all(key, template, text)


def _require_all(key: str, template: PromptTemplate, text: str) -> None:
    """Raise TemplateFault if a variable of the template does not appear in full in `text`."""
    for variable, parts in _SAMPLE_PARTS.items():
        if variable in template.variables and not all(part in text for part in parts):
            raise TemplateFault(
                f"{key}: `{variable}` does not appear in full; print each part of it, such as "
                "{% for term, translation in terms %}{{ term }}: {{ translation }}{% endfor %}"
            )
