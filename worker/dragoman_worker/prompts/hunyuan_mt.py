"""Profiles for Tencent's Hunyuan-MT 7B and HY-MT1.5: the prompts of their cards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dragoman_text.inline import InlineTag, find_tags
from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts import names, steering
from dragoman_worker.prompts.base import ProfileSampling, PromptInput, Rendering, Steering
from dragoman_worker.prompts.cleaning import cleaned
from dragoman_worker.prompts.hy_mt2 import LANGUAGES

_SAMPLING: Final = ProfileSampling(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)
_FORMATTED: Final = (
    "将以下<source></source>之间的文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释，"
    "原文中的<sn></sn>标签表示标签内文本包含格式信息，需要在译文中相应的位置尽量保留该标签。"
    "输出格式为：<target>str</target>\n\n<source>{text}</source>"
)
"""The prompt for formatted text of HY-MT1.5, whose tags are ``<s1>`` … ``</s1>``."""
_ENGLISH: Final = "Translate the following segment into"
_CHINESE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "zh": "中文",
        "en": "英语",
        "fr": "法语",
        "pt": "葡萄牙语",
        "es": "西班牙语",
        "ja": "日语",
        "tr": "土耳其语",
        "ru": "俄语",
        "ar": "阿拉伯语",
        "ko": "韩语",
        "th": "泰语",
        "it": "意大利语",
        "de": "德语",
        "vi": "越南语",
        "ms": "马来语",
        "id": "印尼语",
        "fil": "菲律宾语",
        "hi": "印地语",
        "pl": "波兰语",
        "cs": "捷克语",
        "nl": "荷兰语",
        "km": "高棉语",
        "my": "缅甸语",
        "fa": "波斯语",
        "gu": "古吉拉特语",
        "ur": "乌尔都语",
        "te": "泰卢固语",
        "mr": "马拉地语",
        "he": "希伯来语",
        "bn": "孟加拉语",
        "ta": "泰米尔语",
        "uk": "乌克兰语",
        "bo": "藏语",
        "kk": "哈萨克语",
        "mn": "蒙古语",
        "ug": "维吾尔语",
        "yue": "粤语",
    }
)
"""The column "Chinese Names" of the card of HY-MT1.5."""


@dataclass(frozen=True, slots=True)
class HunyuanMt:
    """Hunyuan-MT 7B: a Chinese prompt to and from Chinese, an English one for other pairs.

    No system message. The sampling is the card's. A source that was neither given nor detected
    counts as not Chinese. HY-MT1.5 has a prompt for formatted text, `formatted`: a document's tags
    have the names that it knows there, and get their own back in the answer.
    """

    name: str = "hunyuan-mt"
    models: str = "Hunyuan-MT 7B (Tencent)"
    licence: str = "Tencent Hunyuan: not in the EU, the UK and South Korea"
    takes: frozenset[Steering] = frozenset()
    needs_source: bool = False
    languages: frozenset[str] | None = LANGUAGES
    sampling: ProfileSampling = _SAMPLING
    max_source_tokens: int | None = None
    max_source_sentences: int | None = None
    formatted: bool = False
    chinese: str = "把下面的文本翻译成{target}，不要额外解释。\n\n{text}"

    def render(self, segment: PromptInput) -> Rendering:
        """Render one user message. Raises UnsupportedLanguage."""
        steering.require_languages(self, segment)
        content = _request(self, segment)
        prompt = Prompt(messages=(Message("user", content),))
        # The Chinese names of the card have neither script nor region.
        in_english = content.startswith(_ENGLISH)
        lost = () if in_english else steering.variant_warning(self, segment)
        return Rendering(prompt, steering.warnings(self, segment) + lost)

    def clean(self, text: str, source: str | None = None) -> str:
        """Remove wrappers and introductions from the output, and give tags their names back."""
        text = cleaned(text, source)
        return restored(text, source) if self.formatted and source else text


def _request(profile: HunyuanMt, segment: PromptInput) -> str:
    context = (segment.context or "").strip() if "context" in profile.takes else ""
    terms = _terms(segment) if "glossary" in profile.takes else {}
    target, text = _chinese_name(segment.target_lang), segment.text
    if context or terms:
        return _guided(target, text, context, terms)
    if profile.formatted and (tagged := renamed(text)) is not None:
        return _FORMATTED.format(target=target, text=tagged)
    if "zh" in {names.base_of(tag) for tag in (segment.target_lang, segment.source_lang) if tag}:
        return profile.chinese.format(target=target, text=text)
    name = names.distinct_name(segment.target_lang)
    return f"{_ENGLISH} {name}, without additional explanation.\n\n{text}"


def _guided(target: str, text: str, context: str, terms: Mapping[str, str]) -> str:
    """Render the card's prompts for terms and for context; both are in Chinese for all pairs."""
    blocks = []
    if terms:
        lines = [f"{source} 翻译成 {translation}" for source, translation in terms.items()]
        blocks.append("\n".join(["参考下面的翻译：", *lines, ""]))
    if context:
        task = f"参考上面的信息，把下面的文本翻译成{target}，注意不需要翻译上文，也不要额外解释："
        blocks.append(f"{context}\n{task}")
    else:
        blocks.append(f"将以下文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释：")
    return "\n".join([*blocks, text])


def _terms(segment: PromptInput) -> dict[str, str]:
    return {word: word for word in steering.untranslated(segment)} | dict(segment.glossary)


def _chinese_name(tag: str) -> str:
    if names.base_of(tag) == "zh" and names.script_of(tag) == "Hant":
        return "繁体中文"
    return _CHINESE_NAMES[names.listed(tag, LANGUAGES) or "en"]


HUNYUAN_MT: Final = HunyuanMt()
HY_MT1_5: Final = HunyuanMt(
    name="hy-mt1.5",
    models="HY-MT1.5 1.8B, 7B (Tencent)",
    takes=frozenset(("context", "glossary", "do_not_translate")),
    formatted=True,
    chinese="将以下文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释：\n\n{text}",
)


_DOCUMENTS: Final = re.compile(r"<(/?)([gx])([0-9]{1,6})\s*/?>", re.IGNORECASE)
_MODELS: Final = re.compile(r"<\s*(/?)\s*s([0-9]{1,6})\s*/?\s*>", re.IGNORECASE)


def renamed(text: str) -> str | None:
    """Return the text with the model's names; None if it has no tags, or others than documents'."""
    if _letters(find_tags(text)) is None:
        return None

    def name(match: re.Match[str]) -> str:
        close, letter, number = match.groups()
        return f"<{close}s{number}>" if letter in "gG" else f"<s{number}></s{number}>"

    return _DOCUMENTS.sub(name, text)


def restored(text: str, source: str) -> str:
    """Return an answer with the tags of its source in place of the model's."""
    letters = _letters(find_tags(source))
    if letters is None:
        return text

    def name(match: re.Match[str]) -> str:
        close, number = match.groups()
        letter = letters.get(number)
        if letter is None:
            return match[0]
        if letter == "x":
            return "" if close else f"<x{number}/>"
        return f"<{close}g{number}>"

    return _MODELS.sub(name, text)


def _letters(tags: list[InlineTag]) -> Mapping[str, str] | None:
    """Return the letter of each number; None without tags, with other tags, or if two share one."""
    letters: dict[str, str] = {}
    for tag in tags:
        if not tag.numbered or (tag.name[0] == "x") != (tag.form == "empty"):
            return None
        if letters.setdefault(tag.name[1:], tag.name[0]) != tag.name[0]:
            return None
    return letters or None
