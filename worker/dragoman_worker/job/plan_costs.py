"""Cost of planning a job by its fields: those that every request repeats weigh most."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_worker.errors import TooLong
from dragoman_worker.job.plan import Plan
from dragoman_worker.job.terms import MOST_TERMS


class OverBudget(TooLong):
    """Planning the job took more CPU time than `limits.plan_budget_s`."""


def steering_chars(job: TranslationJob) -> int:
    """Return the most characters beside the text that a request of the job repeats."""
    if job.context is None and job.glossary is None and job.do_not_translate is None:
        return _chars(job.instructions or ())  # the usual job
    pairs = (len(source) + len(target) for source, target in (job.glossary or {}).items())
    return (
        len(job.context or "")
        + sum(nlargest(MOST_TERMS, pairs))
        + _chars(job.do_not_translate or ())
        + _chars(job.instructions or ())
    )


def item_steering_chars(item: Item) -> int:
    """Return the characters beside its text that every request of an item repeats."""
    if item.context is None and item.protect is None:  # the usual item
        return 0
    return len(item.context or "") + _chars(item.protect or ())


def over_budget(plan: Plan, budget_s: float) -> str:
    """Return the message for the job's owner: the field that costs most, and the remedy."""
    field, advice = _most_expensive(plan)
    return (
        f"{field}: planning the job took more than {budget_s:g} s of CPU time "
        f"(limits.plan_budget_s), most of it for this field; {advice}"
    )


def _most_expensive(plan: Plan) -> tuple[str, str]:
    job = plan.job
    items, text = len(job.items), sum(len(item.text) for item in job.items)
    read = items + text // 1_000  # about as many requests as there are, or texts that are searched
    costs = {
        "text": (text, f"split its {text} characters among several jobs"),
        "context": (
            items * len(job.context or "") + sum(len(item.context or "") for item in job.items),
            f"it is repeated for each of {items} items: shorten it, or give it to fewer of them",
        ),
        "glossary" if job.glossary else "glossary_id": (
            _terms_in_prompts(plan),
            "give fewer or shorter terms, or split the job",
        ),
        "do_not_translate": (
            read * _terms(job.do_not_translate or ()),
            "give the words that this job's texts hold, or split the job",
        ),
        "text.protect": (
            sum((1 + len(item.text) // 1_000) * _terms(item.protect or ()) for item in job.items),
            "give fewer of them to each item, or split the job",
        ),
    }
    field = max(costs, key=lambda name: costs[name][0])
    if field == "text" and items > text // 10:
        return "text", f"split its {items} items among several jobs"
    return field, costs[field][1]


def _terms_in_prompts(plan: Plan) -> int:
    """Return the characters of terms in the prompts, by those that are planned.

    The search for terms costs the same however many there are.
    """
    found = sum(
        len(term.source) + len(term.targets[0]) for unit in plan.units for term in unit.terms
    )
    return found * len(plan.items) // max(1, plan.next_item)


def _terms(terms: Iterable[str]) -> int:
    """Return the cost of finding terms in 1,000 characters, in characters read."""
    return sum(20 + len(term) // 10 for term in terms)


def _chars(texts: Iterable[str]) -> int:
    return sum(map(len, texts))
