"""Whatever was done to a file: verify and repair agree, no byte is in neither half, and the copy is sound."""

import zlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.jobs.check.repair import repair
from penstock.jobs.check.verify import verify
from record_files import PAYLOADS, example
from wire.example import Feature, SequenceExample, write_sequence_example
from wire.frame import write_records

SERIES = write_sequence_example(SequenceExample({}, {"s": [Feature("int64", [1, 2])] * 3}))
SOME = [
    *PAYLOADS,
    example(blob=b"\x00" * 200),
    b"",
    b"\x0a\x7f",
    b"no example",
    SERIES,
    SERIES + b"\x12\x02\x0a\x7f",
]

payloads = st.lists(st.sampled_from(SOME), max_size=8)
# (kind of harm, where as a share of the file, how much)
harms = st.lists(
    st.tuples(
        st.sampled_from(["flip", "insert", "drop", "zero", "cut"]), st.floats(0, 1), st.integers(1, 90)
    ),
    max_size=4,
)


def harm(data: bytes, harms: list[tuple[str, float, int]]) -> bytes:
    for kind, share, amount in harms:
        at = int(share * len(data))
        before, inside, after = data[:at], data[at : at + amount], data[at + amount :]
        if kind == "flip":
            data = before + bytes(byte ^ 1 << amount % 8 for byte in inside[:1]) + data[at + 1 :]
        elif kind == "insert":
            data = before + b"\xa5" * amount + data[at:]
        elif kind == "drop":
            data = before + after
        elif kind == "zero":
            data = before + bytes(len(inside)) + after
        else:
            data = before
    return data


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(payloads=payloads, harms=harms, compressed_harms=harms, compress=st.booleans())
def test_repair_of_any_harm_loses_only_records_that_verify_names(
    payloads, harms, compressed_harms, compress, tmp_path_factory
) -> None:
    folder = tmp_path_factory.mktemp("laws")
    source = folder / "a.tfrecord"
    data = harm(write_records(payloads), harms)
    source.write_bytes(harm(zlib.compress(data), compressed_harms) if compress else data)
    verified = verify(source)
    done = repair(source, folder / "out")
    if done.failures:
        assert [fault.what for fault in verified.faults] == [fault.what for fault in done.failures]
        assert not (folder / "out" / source.name).exists()
        return
    assert [loss.fault for loss in done.losses] == list(verified.faults)
    assert verify(folder / "out" / source.name).faults == ()
    bad = folder / "out" / "quarantine" / "a.tfrecord.bad"
    num_bad = bad.stat().st_size if bad.exists() else 0
    assert num_bad == done.num_bytes_lost
    if not compress:
        assert (folder / "out" / source.name).stat().st_size + num_bad == len(data)
    # A loss of no bytes is what could not be inflated; it is no record.
    assert done.num_kept + sum(loss.num_bytes > 0 for loss in done.losses) == verified.num_records
