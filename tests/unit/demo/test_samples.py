"""Unit tests of the samples: valid jobs in the directions of the demo model."""

from __future__ import annotations

from dragoman_demo.samples import samples


def test_every_sample_is_a_job_with_a_unique_id() -> None:
    jobs = [sample.job for sample in samples()]
    assert len({job.job_id for job in jobs}) == len(jobs) == 12


def test_the_samples_go_in_eight_directions() -> None:
    directions = {(sample.source_lang, sample.target_lang) for sample in samples()}
    foreign = {"de", "fr", "es", "ja"}
    assert directions == {("en", tag) for tag in foreign} | {(tag, "en") for tag in foreign}
