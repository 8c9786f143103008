"""Unit tests of the samples: valid jobs in the directions of the demo model."""

from __future__ import annotations

from dragoman_demo.samples import markdown_sentences, samples


def test_every_sample_is_a_job_with_a_unique_id() -> None:
    jobs = [sample.job for sample in samples()]
    assert len({job.job_id for job in jobs}) == len(jobs) > 30


def test_the_samples_go_in_eight_directions() -> None:
    directions = {(sample.source_lang, sample.target_lang) for sample in samples()}
    foreign = {"de", "fr", "es", "ja"}
    assert directions == {("en", tag) for tag in foreign} | {(tag, "en") for tag in foreign}


def test_markdown_marks_are_not_translated() -> None:
    sentences = markdown_sentences()
    assert sentences[0] == "A trip to the sea"
    assert "Do not forget your ticket." in sentences
    assert not any(sentence.startswith(("#", "-")) for sentence in sentences)
