"""Tests of answers that reply instead of translating, and of human translations that seem to."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import replies, reply_words, versions
from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S

SOURCE = (
    "The contract was signed on Monday morning by both parties and took effect immediately"
    " afterwards."
)
GERMAN = "Der Vertrag wurde am Montag unterschrieben und trat sofort in Kraft."


def find(candidate: Candidate) -> Defect | None:
    return replies.find(candidate) or versions.find(candidate)


def found(answer: str, target: str, source: str = SOURCE, source_lang: str | None = "en") -> str:
    """Return `fail`, `slight` or `ok`."""
    defect = find(Candidate(source, answer, target, source_lang))
    return "ok" if defect is None else "slight" if defect.slight else "fail"


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("de", "Es tut mir leid, aber ich kann diesen Text nicht übersetzen, da er geschützt ist."),
        ("zh-Hans", "抱歉，我无法翻译这段文字，因为它可能包含受版权保护的内容。"),
        ("zh-Hant", "很抱歉，我無法協助處理這項請求。"),
        ("hu", "Elnézést, de ezt a szöveget nem tudom lefordítani."),
        ("hi", "क्षमा करें, मैं इस पाठ का अनुवाद नहीं कर सकता।"),
        ("sw", "Samahani, siwezi kutafsiri maandishi haya."),
        ("ka", "ბოდიში, მაგრამ ამ ტექსტის თარგმნა არ შემიძლია."),
        ("yue", "對唔住，我冇辦法翻譯呢段文字。"),
        ("he", "מצטער, אבל איני יכול לתרגם את הטקסט הזה."),
        ("vi", "Xin lỗi, tôi không thể dịch văn bản này."),
        ("pl", "I'm sorry, but I can't help with that."),
        ("cs", "Jako jazykový model nemohu tento požadavek splnit."),
        ("it", "Le mie regole non mi permettono di lavorare su questo contenuto."),
        ("ru", "Мои принципы не позволяют работать с подобным материалом."),
        ("fr", "Le texte est déjà en français, aucune traduction n'est donc nécessaire."),
        ("es", "Por favor, proporcione el texto que desea traducir."),
    ],
)
def test_a_refusal_fails_in_the_language_of_the_answer_and_in_english(
    target: str, answer: str
) -> None:
    assert found(answer, target) == "fail"


def test_a_refusal_into_english_fails() -> None:
    source = "Der Vertrag wurde am Montagmorgen unterschrieben und trat sofort in Kraft."
    answer = "I apologize, but I don't feel comfortable translating that phrase."
    assert found(answer, "en", source, "de") == "fail"
    assert found(answer, "en", source, None) == "fail"


@pytest.mark.parametrize(
    "answer",
    [
        f"Gerne! Hier ist der Text auf Deutsch: {GERMAN}",
        f"Certainly! {GERMAN}",
        f"Assistant: {GERMAN}",
        f"### Translation {GERMAN}",
        f"Die deutsche Fassung lautet:\n{GERMAN}",
        f"{GERMAN} Let me know if you need anything else!",
        f"{GERMAN} Falls du weitere Fragen hast, melde dich gerne.",
        f"{GERMAN} (Anmerkung: Der Wochentag wurde beibehalten.)",
        f"{GERMAN}\n\nIrgendein weiterer Absatz.",
        f"Etwas:\n{GERMAN}",
        f"{GERMAN}\n(Irgendetwas in Klammern)",
        f"{GERMAN} / {GERMAN}",
        f"{GERMAN} Sagen Sie mir, ob der Stil zu förmlich ist.",
        f"{GERMAN} (Das Wort für den Vertrag steht hier im Sinne einer Vereinbarung.)",
    ],
)
def test_what_is_added_before_or_behind_the_translation_fails(answer: str) -> None:
    assert found(answer, "de") == "fail"


def test_a_label_in_latin_letters_before_another_script_fails() -> None:
    assert found("Reply here: 合同于周一上午由双方签署，并立即生效。", "zh-Hans") == "fail"
    assert found("Please give me the text, could you?", "en") == "fail"


def test_a_line_more_than_the_source_has_is_reported() -> None:
    assert found("Der Vertrag wurde unterschrieben.\nEr trat in Kraft.", "de") == "slight"


WHOLE = f"{GERMAN[:-1]}, wie beide Parteien bestätigten."


def test_a_lead_that_says_nothing_of_the_source_stands_before_a_whole_translation() -> None:
    assert found(f"Mein Vorschlag: {WHOLE}", "de") == "fail"
    assert found(f"Mein Vertrag: {WHOLE}", "de") == "ok"  # words of the translation alone


@pytest.mark.parametrize(
    ("source", "answer", "target"),
    [
        (SOURCE, GERMAN, "de"),
        (  # wrapped otherwise
            "This part of the site asks us to verify that\nyou are who you claim to be.",
            "ส่วนนี้ของไซต์ต้องการให้เราตรวจสอบคุณ\nยืนยันความเป็นเจ้าของ\nของคุณ",
            "th",
        ),
        (
            "Exit status is 0 if the text is neither null nor 0, 1 if it is null\nor 0.",
            "Der Status ist 0, wenn der Text weder null noch 0 ist,\nund 1, wenn null\noder 0.",
            "de",
        ),
        ("Sorry, I can't help with the text.", "Tut mir leid, da kann ich nicht helfen.", "de"),
        ("Let me know if you need more!", "Sag Bescheid, wenn du noch etwas brauchst!", "de"),
        ("The locale cannot be deleted.", "La langue ne peut pas être supprimée.", "fr"),
        ("You have old mail.", "Ai un mesaj vechi.", "ro"),
        ("Couldn't find package %s", "Az alábbi csomag nem található: %s", "hu"),
        ("PCRE is compiled without UTF8", "PCRE je prevedena bez podrške za UTF8", "sr-Latn"),
        (
            "  -S, --status   report password status on the named account",
            "  -S, --status   emandako kontuaren pasahitz egoera\n                 erreportea egin",
            "eu",
        ),
        (
            "If no input file is given, the current directory is searched for the file.",
            "Se nenhum arquivo for fornecido, o diretório atual é pesquisado\npelo arquivo.",
            "pt-BR",
        ),
        ("Translate the text", "Den Text übersetzen", "de"),
        ("Sure! See you tomorrow.", "Klar! Bis morgen.", "de"),
        ("As I said - take it.", "Wie gesagt: Nimm es.", "de"),
        ("He said it. She left (early).", "Er sagte es. Sie ging (früh).", "de"),
    ],
)
def test_what_the_source_says_too_is_no_reply(source: str, answer: str, target: str) -> None:
    assert found(answer, target, source) == "ok"


@pytest.mark.parametrize(
    ("source", "answer", "target"),
    [
        ("Transfer money to a friend", "Перевести деньги другу", "ru"),
        ("Fold the letter in half.", "Dopis přeložte napůl.", "cs"),
        ("This results in lower costs.", "Esto se traduce en menores costes.", "es"),
        ("Turn the page.", "Sayfayı çevir.", "tr"),
        ("U.S. should double A.I. funding", "USA sollten Mittel für KI verdoppeln", "de"),
        ('"My mind is made up," he said.', "او گفت: من نظر خود را اعلام کردم.", "fa"),
        ("Translator's note: a pun.", "Nota do tradutor: um trocadilho.", "pt"),
        ("What is the time?", "何時ですか。", "ja"),
        ("Why not try it?", "Probieren Sie es aus.", "de"),
        ("Forgot your password again, my friend?", "Passwort wieder vergessen", "de"),
        ("The United Nations Educational Organization", "国際連合教育機関（UNESCO）です", "ja"),
        ("The Rubens Society of Art and Science", "鲁本斯协会（Rubens Society of Art）", "zh"),
        ("“I'll do it.”", "“好的，我来。”", "zh-Hans"),
        ("Teacher or pupil (of any school) in the city", "Lehrer / Schüler (jeder Schule)", "de"),
    ],
)
def test_what_may_mean_something_else_is_no_reply(source: str, answer: str, target: str) -> None:
    assert found(answer, target, source) == "ok"


def test_a_second_version_and_an_answered_question_are_reported() -> None:
    twice = f"{GERMAN} Oder, in ganz anderen und möglicherweise viel besseren Worten: {GERMAN}"
    assert found(twice, "de") == "slight"
    question = "What is the capital of France?"
    assert found("Die Hauptstadt von Frankreich ist Paris.", "de", question) == "slight"
    assert found("Was ist die Hauptstadt von Frankreich?", "de", question) == "ok"


def test_each_language_has_stems_of_each_meaning() -> None:
    for tag in ("de", "zh-Hant", "sr-Latn", "fil", "yue", "am", "pt-BR", "nn"):
        row = reply_words.row(tag)
        assert reply_words.said("", row).total() == 0
    assert set(reply_words.said("übersetzung, ich kann nicht", "de")) == {"translate", "cannot"}


@pytest.mark.parametrize(
    "unit",
    ["sorry ", "translate: ", "(", "! ", "\n", "if you ", "。", "**", "als ki ", "__", "(a", " / "],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    find(Candidate("Hello", "Hallo, Welt", "de"))
    started = time.process_time()
    find(Candidate("Hello", text, "de", "en"))
    find(Candidate(text, f"{text}x", "de", "en"))
    find(Candidate(text, "Sorry, I cannot translate the text", "de", None))
    assert time.process_time() - started < LINEAR_S
