"""Tests of the gate `garbled`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import garbled
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

SOURCE = "The contract was signed in the morning by both parties."
GERMAN = "Der Vertrag wurde am Morgen von beiden Parteien für gültig erklärt – „schön“."


def is_found(source: str, answer: str, target: str = "de") -> bool:
    return garbled.find(Candidate(source, answer, target, "en")) is not None


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("&quot;Le contrat a été signé le matin&quot;, a-t-il dit.", "fr"),
        ("L&#39;accord a été signé.", "fr"),
        ("Le contrat \\u00e9tait sign\\u00e9.", "fr"),
        ("DerVertragwurdeamMorgenvonbeidenParteienunterzeichnet.", "de"),
        ("Der Vertrag wurde am MorgenvonbeidenParteienunterzeichnetundgültig.", "de"),
        ("договорбылподписанутромобеимисторонами.", "ru"),
        ("계약은아침에양측에의해서명되었으며그직후부터효력이발생했습니다.", "ko"),
        ("D e r V e r t r a g w u r d e a m M o r g e n", "de"),
        (GERMAN.encode().decode("cp1252", errors="replace"), "de"),
        (GERMAN.encode().decode("latin-1"), "de"),
        ("Договор был подписан".encode().decode("cp1251", errors="replace"), "ru"),
        ("Договор был подписан".encode().decode("latin-1"), "ru"),
        ("契約は朝に署名されました。".encode().decode("latin-1"), "ja"),
        ("VocÃª pode, IndonesiÃ«, moÅ¼e", "pt"),
        ("Å‚Ä…cznoÅ›Ä‡", "pl"),
        ("契 約 は 朝 に 署 名 さ れ ま し た", "ja"),
        ("Gut 👍".encode().decode("cp1252", errors="replace"), "de"),
    ],
)
def test_damaged_characters_are_a_defect(answer: str, target: str) -> None:
    assert is_found(SOURCE, answer, target)
    assert not is_found(answer, answer, target)


@pytest.mark.parametrize(
    ("source", "answer", "target"),
    [
        (SOURCE, GERMAN, "de"),
        ("Coffee & tea", "Kaffee &nbsp;und Tee", "de"),
        ("He said &quot;no&quot;", "Er sagte &quot;nein&quot;", "de"),
        ("COFFEE", "« CAFÉ » «CAFÉ» CAMPEÃ”", "fr"),
        ("Legal expenses insurers", "Rechtsschutzversicherungsgesellschaften", "de"),
        (f"See https://example.org/{'a' * 60} now", f"Siehe https://example.org/{'a' * 60}", "de"),
        (SOURCE, "契約は朝に両当事者によって署名されましたので有効となりました。", "ja"),
        (SOURCE, "สัญญาลงนามในตอนเช้าโดยทั้งสองฝ่ายและมีผลบังคับใช้ทันทีหลังจากนั้น", "th"),
        ("A B C D E F G H I J K L M", "A B C D E F G H I J K L M", "de"),
        ("", "", "de"),
    ],
)
def test_what_is_written_so_rightly_is_no_defect(source: str, answer: str, target: str) -> None:
    assert not is_found(source, answer, target)


@pytest.mark.parametrize("unit", ["&", "Ã", "\\u00", "a", "ä-", "a ", "РЎ", "&#3", "àà"])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    garbled.find(Candidate("Hello", text, "de"))
    assert time.process_time() - started < LINEAR_S
