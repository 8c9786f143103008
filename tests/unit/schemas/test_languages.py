"""Language tags are recognised and spelled canonically."""

from __future__ import annotations

import pytest

from dragoman_schemas.languages import UnknownLanguage, normalise


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("zh_CN", "zh-CN"),
        ("zh-cn", "zh-CN"),
        ("ZH_hant_tw", "zh-Hant-TW"),
        ("sr_latn", "sr-Latn"),
        ("pt-br", "pt-BR"),
        ("iw", "he"),
        ("IW_il", "he-IL"),
        ("in", "id"),
        ("eng", "en"),
        ("cmn", "cmn"),
        ("i-klingon", "tlh"),
        ("zh-min-nan", "nan"),
        ("en-GB-oed", "en-GB-oxendict"),
        ("es-419", "es-419"),
        ("de-DE-1996", "de-DE-1996"),
        ("en-u-co-phonebk", "en-u-co-phonebk"),
    ],
)
def test_a_language_has_one_spelling(tag: str, expected: str) -> None:
    assert normalise(tag) == expected
    assert normalise(expected) == expected


@pytest.mark.parametrize(
    "tag",
    [
        "",
        " ",
        "d",
        "xx",
        "zz",
        "auto",
        "german",
        "und",
        "UND",
        "und-Latn",
        "mul",
        "zxx",
        "mis",
        "root",
        "x-private",
        "de-",
        "de--DE",
        " de",
        "de\n",
        "de-Qqqq",
        "de-AB",
        "zh-min-419-xc",
        "дe",
        "de;en",
        "de-" + "x" * 5000,
    ],
)
def test_an_invalid_tag_is_refused_by_name(tag: str) -> None:
    with pytest.raises(UnknownLanguage) as raised:
        normalise(tag)
    assert len(str(raised.value)) < 120
