"""The generator's contract."""

import pytest
from openinfer.oinf import OinfError
from openinfer.oinf.random import SplitMix64, random_bytes, random_values


def test_splitmix64_reference_values():
    g = SplitMix64(1234567)
    assert [g.next() for _ in range(5)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


def test_floats_and_integers(both):
    g = SplitMix64(1)
    draws = [g.next() for _ in range(3000)]
    want = [-1.0 + 2.0 * (u >> 11) * 2.0**-53 for u in draws]
    assert random_values("f64", 1, -1, 1, 3000) == want
    assert random_values("i8", 1, -3, 3, 3000) == [-3 + u % 7 for u in draws]
    assert set(random_values("t1", 1, -1, 1, 100)) == {-1, 1}
    assert set(random_values("bool", 1, 0, 1, 100)) == {False, True}
    assert random_values("u64", 1, 0, 2**64 - 1, 5) == draws[:5]
    for bad in ((0.5, 2), (2, 1), (0, 300)):
        with pytest.raises(OinfError):
            random_values("u8", 1, bad[0], bad[1], 100)


@pytest.mark.parametrize("name", ["f8", "f16", "bf16", "f32", "f64"])
def test_numpy_draws_the_same(name, monkeypatch):
    pytest.importorskip("numpy")
    from openinfer.oinf import _np

    fast = bytes(random_bytes(name, 2**64 - 5, -0.3, 7.1, 5000))
    monkeypatch.setattr(_np, "available", lambda: None)
    assert bytes(random_bytes(name, 2**64 - 5, -0.3, 7.1, 5000)) == fast
