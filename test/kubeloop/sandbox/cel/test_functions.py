"""What Kubernetes' own functions do, apart from the language around them."""

from __future__ import annotations

import itertools

import pytest

from kubeloop.sandbox.cel import collections, net, quantities, semver, texts
from kubeloop.sandbox.cel.names import escape, field_path, uses_old_self
from kubeloop.sandbox.cel.values import parse_duration


def test_quantities_are_exact() -> None:
    assert quantities.quantity("1Ki") == quantities.quantity("1024")
    assert quantities.add(quantities.quantity("100m"), quantities.quantity("200m")) == quantities.quantity(
        "0.3"
    )
    assert quantities.compare(quantities.quantity("1G"), quantities.quantity("1Gi")) == -1


def test_urls_are_absolute_or_paths() -> None:
    assert [net.is_url(text) for text in ("https://h/x", "/x", "h/x", "a b", "", "https://h:x/")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert net.URL_PARTS["getHostname"](net.url("http://[::1]:80/")) == "::1"


def test_networks_contain_addresses_and_smaller_networks() -> None:
    ten = net.cidr("10.0.0.0/8")
    assert net.contains_ip(ten, "10.1.2.3")
    assert not net.contains_ip(ten, "::1")
    assert net.contains_cidr(ten, "10.1.0.0/16")
    assert not net.contains_cidr(net.cidr("10.1.0.0/16"), ten)
    assert net.masked(net.cidr("10.1.2.3/8")) == ten


@pytest.mark.parametrize("text", ["1.2.3.4/33", "1.2.3.4", "x/8", "10.0.0.0/08", "::ffff:1.2.3.4/96"])
def test_what_is_no_network_is_told(text: str) -> None:
    assert not net.is_cidr(text)
    with pytest.raises(ValueError, match="network address parse error"):
        net.cidr(text)


def test_versions_follow_the_precedence_of_semver() -> None:
    order = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0",
        "1.2.0",
    ]
    for lower, higher in itertools.pairwise(order):
        assert semver.compare(semver.semver(lower), semver.semver(higher)) == -1


def test_lists_tell_where_values_are_and_never_take_true_for_one() -> None:
    assert collections.index_of([True, 1, 1], 1) == 1
    assert collections.last_index_of([1, True], 1) == 0
    assert collections.distinct([1, True, 1]) == [1, True]
    with pytest.raises(ValueError, match="list is length 1"):
        collections.cut([1], 0, 2)


def test_expressions_find_in_texts() -> None:
    assert texts.find("abc 123", "[0-9]+") == "123"
    assert texts.find_all("1 2 3", "[0-9]", 2) == ["1", "2"]


def test_names_are_escaped_as_the_server_does() -> None:
    assert escape("a-b.c/d__e") == "a__dash__b__dot__c__slash__d__underscores__e"
    assert escape("namespace") == "__namespace__"
    assert escape("1a") is None


def test_field_paths_name_properties() -> None:
    assert field_path(".a.b") == ["a", "b"]
    assert field_path("['a-b'].c") == ["a-b", "c"]
    assert field_path("a") is None
    assert field_path(".a[0]") is None


def test_only_a_use_of_the_variable_makes_a_transition_rule() -> None:
    assert uses_old_self("self == oldSelf")
    assert not uses_old_self("self == 'oldSelf'")


def test_durations_are_gos() -> None:
    parsed = parse_duration("1h30m1.5s")
    assert parsed is not None
    assert parsed.total_seconds() == 5401.5
    assert parse_duration("1") is None
