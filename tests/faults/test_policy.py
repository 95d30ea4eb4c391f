"""What becomes of bad records: raised, skipped or collected, each loss named and counted, with a ceiling."""

import logging

import pytest

import penstock as ps
from penstock.errors import CorruptRecordError, OptionError, TooManySkippedError
from raising import containing, raises_with
from record_files import example, flip, open_split, write_plain
from wire.frame import write_record

ROWS = 12
BAD = [2, 3, 7, 11]
SOUND = [row for row in range(ROWS) if row not in BAD]


@pytest.fixture
def path(tmp_path):
    """A file in which the payloads of four records are damaged."""
    frames = [write_record(example(row=row)) for row in range(ROWS)]
    for row in BAD:
        frames[row] = flip(frames[row], 14)
    path = tmp_path / "bad.tfrecord"
    path.write_bytes(b"".join(frames))
    return path


def rows_of(samples):
    return [sample["row"] for sample in samples]


def with_ceiling(max_skipped):
    return ps.options.ReadOptions(max_skipped=max_skipped)


def test_skip_passes_over_bad_records_and_logs_each_once(path, caplog):
    split = open_split(path, on_error="skip")
    with caplog.at_level(logging.WARNING, logger="penstock"):
        assert rows_of(split) == SOUND
        assert rows_of(split) == SOUND
        assert split.columns()["row"].values.tolist() == SOUND
    assert caplog.messages == [containing(path, "payload", row) for row in BAD]
    assert split.num_skipped == len(BAD)
    assert len(split.rejected) == len(BAD)


def test_collect_keeps_the_errors_in_the_order_of_records_and_logs_nothing(path, caplog):
    split = open_split(path, on_error="collect")
    split.columns(6)
    assert rows_of(split) == SOUND
    assert [error.record for error in split.rejected] == BAD
    assert all(type(error) is CorruptRecordError for error in split.rejected)
    assert split.num_skipped == len(BAD)
    assert caplog.messages == []


def test_losses_are_counted_when_they_are_met_and_not_before(path):
    split = open_split(path, on_error="collect")
    assert (split.num_skipped, split.rejected) == (0, [])
    split.columns(0, 4)
    assert [error.record for error in split.rejected] == [2, 3]


def test_numbers_do_not_shift_whatever_is_skipped(path):
    split = open_split(path, on_error="skip")
    assert len(split) == ROWS
    assert [split[row]["row"] for row in SOUND] == SOUND
    assert rows_of(split[1:9]) == [1, 4, 5, 6, 8]
    assert rows_of(split[::-1]) == SOUND[::-1]
    assert split.columns(3, 8, fields=["row"])["row"].values.tolist() == [4, 5, 6]


@pytest.mark.parametrize("policy", ["raise", "skip", "collect"])
@pytest.mark.parametrize("row", [2, -1])
def test_record_asked_for_by_its_number_is_raised_under_every_policy(path, policy, row):
    split = open_split(path, on_error=policy)
    with pytest.raises(CorruptRecordError) as caught:
        split[row]
    assert (caught.value.record, caught.value.field) == (row % ROWS, "payload")
    assert split.num_skipped == 0


@pytest.mark.parametrize("use", [list, lambda split: list(split.records()), lambda split: split.columns()])
def test_raise_names_the_first_bad_record(path, use):
    with raises_with(CorruptRecordError, path=str(path), record=2, field="payload"):
        use(open_split(path))


@pytest.mark.parametrize("policy", ["skip", "collect"])
def test_ceiling_that_is_met_is_no_error(path, policy):
    split = open_split(path, on_error=policy, options=with_ceiling(len(BAD)))
    assert rows_of(split) == SOUND


@pytest.mark.parametrize("policy", ["skip", "collect"])
@pytest.mark.parametrize("ceiling", [0, 1, 3])
def test_one_record_above_the_ceiling_is_an_error_that_names_it(path, policy, ceiling):
    split = open_split(path, on_error=policy, options=with_ceiling(ceiling))
    for _ in range(2):  # it is no less of an error the second time
        with pytest.raises(TooManySkippedError) as caught:
            list(split)
        error = caught.value
        assert isinstance(error, RuntimeError)
        assert (error.path, error.record, error.got) == (str(path), BAD[ceiling], ceiling + 1)
        assert error.expected == containing(ceiling, "max_skipped")
        assert isinstance(error.__cause__, CorruptRecordError)
        assert error.__cause__.record == BAD[ceiling]
        assert split.num_skipped == ceiling


def test_ceiling_counts_each_record_once_however_often_it_is_met(path):
    split = open_split(path, on_error="skip", options=with_ceiling(len(BAD)))
    for _ in range(3):
        assert rows_of(split) == SOUND
        assert len(list(split.records())) == len(SOUND)


def test_splits_have_separate_accounts(tmp_path, path):
    path.rename(tmp_path / "train.tfrecord")
    write_plain(tmp_path / "test.tfrecord", [example(row=row) for row in range(3)])
    dataset = ps.open(tmp_path, on_error="collect", options=with_ceiling(4))
    assert rows_of(dataset["train"]) == SOUND
    assert rows_of(dataset["test"]) == [0, 1, 2]
    assert (dataset["train"].num_skipped, dataset["test"].num_skipped) == (4, 0)


def test_file_in_which_every_payload_is_damaged_opens_and_raises(tmp_path):
    path = tmp_path / "bad.tfrecord"
    path.write_bytes(b"".join(flip(write_record(example(row=row)), 14) for row in range(3)))
    dataset = ps.open(path)
    assert (dataset.payload, len(dataset["all"])) == ("empty", 3)
    with raises_with(CorruptRecordError, path=str(path), record=0, field="payload"):
        list(dataset["all"])
    skipping = open_split(path, on_error="skip")
    assert (list(skipping), skipping.num_skipped) == ([], 3)


@pytest.mark.parametrize("policy", ["ignore", "", None, "Raise"])
def test_unknown_policy_is_refused_listing_the_choices(path, policy):
    choices = containing("'raise'", "'skip'", "'collect'")
    with raises_with(OptionError, what=containing("on_error"), expected=choices, got=repr(policy)):
        ps.open(path, on_error=policy)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_records_above_max_record_bytes_are_bad_records(tmp_path, on_error):
    path = write_plain(tmp_path / "big.tfrecord", [b"x" * 10, b"x" * 11, b"x" * 9])
    split = open_split(path, on_error=on_error, options=ps.options.ReadOptions(max_record_bytes=10))
    assert len(split) == 3
    if on_error == "skip":
        assert [len(payload) for payload in split.records()] == [10, 9]
        return
    with pytest.raises(CorruptRecordError) as caught:
        list(split.records())
    error = caught.value
    assert (error.record, error.offset, error.field) == (1, 26, "length")
    assert (error.expected, error.got) == (containing(10), containing(11))
