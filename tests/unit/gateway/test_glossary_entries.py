"""TSV and CSV of a dictionary: any terms come back as they were given."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_gateway.errors import ApiError
from dragoman_gateway.glossaries.entries import Pair, decoded, encoded, read_terms, written
from dragoman_schemas.glossaries import decode_terms
from dragoman_text.terms import Term, TermIndex

EN_DE = Pair("en", "de")
SIGNS = st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cf", "Zs", "Cs"))
TERM = st.builds("".join, st.lists(SIGNS | st.sampled_from(list(' ",;')), max_size=30)).map(
    str.strip
)
TERMS = st.dictionaries(TERM.filter(bool), TERM.filter(bool), min_size=1, max_size=20)


@given(TERMS, st.sampled_from(["tsv", "csv"]))
def test_what_is_written_reads_back(terms: dict[str, str], form: str) -> None:
    assert read_terms(written(terms, form), form, EN_DE) == terms
    assert list(decoded(encoded(terms).content).items()) == list(terms.items())


@given(TERMS, st.booleans(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_marks_blank_lines_and_line_ends_do_not_matter(
    terms: dict[str, str], mark: bool, end: str, quoted: bool
) -> None:
    lines = [f" {source}\t{target} " for source, target in terms.items()]
    text = ("\ufeff" if mark else "") + end.join(["", *lines, " \t", ""])
    assert read_terms(text, "tsv", EN_DE) == terms
    table = io.StringIO()
    writer = csv.writer(
        table, lineterminator=end, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    )
    writer.writerows([source, target, "EN", "de-AT"] for source, target in terms.items())
    assert read_terms(("\ufeff" if mark else "") + table.getvalue(), "csv", EN_DE) == terms


@given(st.text(max_size=200), st.sampled_from(["tsv", "csv"]))
def test_any_text_is_terms_or_a_refusal_that_names_a_line(text: str, form: str) -> None:
    terms: Mapping[str, str] = {}
    refusal = None
    try:
        terms = read_terms(text, form, EN_DE)
    except ApiError as error:
        refusal = error
    if refusal is not None:
        assert refusal.status == 400
        assert "line" in refusal.message or "no term" in refusal.message
    for term in [*terms, *terms.values()]:
        assert 1 <= len(term) <= 200
        assert term == term.strip()
        assert not any(unicodedata.category(sign) == "Cc" for sign in term)


def test_terms_that_differ_in_case_are_found_in_their_own_case() -> None:
    stored = encoded({"Gate": "Tor", "gate": "Schranke", "fee": "Gebühr"}).content
    index = TermIndex([Term(*each) for each in decode_terms(stored)])
    found = {text: [term.targets for term in index.find(text)] for text in ("Gate", "gate", "FEE")}
    assert found == {"Gate": [("Tor",)], "gate": [("Schranke",)], "FEE": [("Gebühr",)]}


def test_changed_terms_beyond_the_limit_are_refused() -> None:
    with pytest.raises(ApiError, match="more than 100,000"):
        encoded({str(number): "x" for number in range(100_001)})
