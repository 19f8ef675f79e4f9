"""A report holds every section, its numbers are the certificate's, and it loads nothing."""

import base64
import json
import re
import sys
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch

from sumformer.errors import MissingDependencyError, NotSupportedError
from sumformer.experiments.construction_report import budget, degrees, slices, timing, write_report
from sumformer.experiments.report.numbers import count, duration, nearest, rounded_up
from sumformer.targets.domain import Box, Tokens
from sumformer.theorems.construction import construct, load

GAUSSIAN = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"
CASES = {
    "gaussian": (GAUSSIAN, 1e-3, {"d": 2, "n": "any"}),
    "figure_2": ("x + 7*x**2 + 3*x*sum_others(y)**3", 1e-6, {"d": 4, "n": 3}),
    "soft_rank": ("mean(sigmoid((x-y)/0.1))", 1e-3, {"d": 1}),
    "others": ("mean_others(exp(-norm2(x-y)))", 1e-3, {"d": 2, "n": "2..12"}),
    "float32": ("mean(exp(-norm2(x-y)))", 1e-2, {"d": 1, "box": "0.1:0.7", "dtype": "float32"}),
}
SECTIONS = ("budget", "slices", "degrees", "timing", "tables")
VOID = {"meta", "img"}


@dataclass
class Found:
    """What an attack returns, as far as a report looks at it."""

    worst: float
    trials: int = 2500
    seconds: float = 1.5
    by_kind: dict[str, float] = field(default_factory=lambda: {"two clusters <&>": 1e-9})


class Page(HTMLParser):
    """Text, tags and images of a page whose tags are balanced."""

    def __init__(self, html):
        super().__init__()
        self.text, self.images, self.ids, self.tags, self.links, self.open = "", [], [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.links += [attributes[key] for key in ("href", "src", "action") if key in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.images += [attributes] if tag == "img" else []
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if not self.open or self.open[-1] != "style" else ""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """name → (construction, page, html), each made once."""
    cache = {}

    def make(name):
        if name not in cache:
            source, epsilon, domain = CASES[name]
            construction = construct(source, epsilon, **domain)
            folder = tmp_path_factory.mktemp(name)
            found = Found(construction.certificate.total / 4)
            html = write_report(construction, folder / "report.html", found, timing_budget=0.1).read_text("utf-8")
            cache[name] = construction, Page(html), html
        return cache[name]

    return make


@pytest.mark.parametrize("name", CASES)
class TestEveryReport:
    def test_sections(self, made, name):
        construction, page, _ = made(name)
        assert all(section in page.ids for section in SECTIONS)
        assert construction.certificate.target in page.text
        assert all(assumption in page.text for assumption in construction.certificate.assumptions)
        assert "sumformer verify" in page.text

    def test_loads_nothing(self, made, name):
        _, page, html = made(name)
        assert "http:" not in html
        assert "https:" not in html
        assert "script" not in page.tags
        assert "link" not in page.tags
        assert all(link.startswith("data:image/") for link in page.links)
        assert len(html.encode()) < 2_000_000

    def test_numbers_are_the_certificate_s(self, made, name):
        construction, page, _ = made(name)
        certificate = construction.certificate
        assert all(repr(t.bound) in page.text for t in certificate.terms)
        assert repr(certificate.total) in page.text
        assert f"≤ {rounded_up(certificate.total)} ≤ ε = {nearest(certificate.epsilon, 6)}" in page.text
        assert f"d' = {certificate.latent_dimension}" in page.text
        shown = json.loads(page.text[page.text.index("{\n") : page.text.rindex("}") + 1])
        assert shown == json.loads(certificate.to_json())

    def test_pictures_are_images_with_words(self, made, name):
        _, page, _ = made(name)
        assert len(page.images) >= 4
        for image in page.images:
            assert len(image["alt"]) > 20
            kind, data = re.fullmatch(r"data:image/(png|svg\+xml);base64,(.*)", image["src"]).groups()
            raw = base64.b64decode(data)
            assert raw.startswith(b"\x89PNG") if kind == "png" else ElementTree.fromstring(raw) is not None

    def test_not_called_false(self, made, name):
        assert "certificate is false" not in made(name)[1].text


def test_latent_dimension_beside_the_proof_s(made):
    assert "the proof's C(n+d, d) − 1 = 34" in made("figure_2")[1].text
    assert "the proof's C(n+d, d) − 1 grows with n" in made("gaussian")[1].text


def test_exact_interpolates_nothing(made):
    text = made("figure_2")[1].text
    assert "Nothing is interpolated" in text
    assert "only rounding is left" in text


def test_a_false_bound_is_called_false(made, tmp_path):
    construction = made("soft_rank")[0]
    certificate = replace(construction.certificate, total=1e-9)
    page = Page(write_report(replace(construction, certificate=certificate), tmp_path, timing_budget=0.01).read_text())
    assert "on these slices exceeds the certified bound" in page.text
    assert budget.run(certificate, Found(1e-8)).violated
    assert budget.run(certificate, Found(float("nan"))).violated
    assert not budget.run(certificate, Found(1e-10)).violated


def test_saved_certificate_is_shown_with_its_hashes(made, tmp_path):
    construction = made("float32")[0]
    construction.save(tmp_path / "a b")
    again = load(tmp_path / "a b")
    text = Page(write_report(again, tmp_path / "a b", timing_budget=0.01).read_text("utf-8")).text
    assert json.loads((tmp_path / "a b" / "certificate.json").read_text())["weights_sha256"] in text
    assert "sumformer verify 'a b'" in text
    assert "No attack was run" in text
    assert sorted(p.name for p in (tmp_path / "a b").iterdir()) == [
        "certificate.json",
        "config.json",
        "model.safetensors",
        "report.html",
    ]


def test_text_is_escaped(made, tmp_path):
    construction = made("float32")[0]
    certificate = replace(construction.certificate, target='<b>"&', assumptions=("<script>1</script>",))
    html = write_report(replace(construction, certificate=certificate), tmp_path, timing_budget=0.01).read_text("utf-8")
    assert "<script>" not in html
    assert "<b>" not in html
    assert '<b>"&' in Page(html).text
    assert "two clusters <&>" in made("float32")[1].text


def test_without_matplotlib(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"sumformer\[plots\]"):
        write_report(made("float32")[0], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_mean_over_inputs_is_not_shown_as_a_bound_for_every_input(made, tmp_path):
    construction = made("float32")[0]
    certificate = replace(construction.certificate, norm="d_1")
    with pytest.raises(NotSupportedError, match="d_1"):
        write_report(replace(construction, certificate=certificate), tmp_path)
    assert list(tmp_path.iterdir()) == []


class TestSlices:
    @pytest.mark.parametrize("name", CASES)
    def test_values_are_those_of_whole_sequences(self, made, name):
        construction = made(name)[0]
        data = slices.run(construction)
        assert construction.target.tokens.allows(data.n)
        part = data.slices[1]
        own = torch.stack([axis[0] for axis in part.axes])
        low, high = slices.corners(construction.target.box, construction.network.outside)
        x = ((low + high) / 2).clamp(low, high)
        x[: len(own)] = own
        X = torch.cat([x[None], part.others])[None]
        construction.target.box.check(X)
        place = (0,) * len(part.axes)
        torch.testing.assert_close(part.f[place], construction.target(X.double())[0, 0, 0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(part.N[place], construction.network(X)[0, 0, 0].double(), rtol=1e-5, atol=1e-6)
        assert data.worst <= construction.certificate.total

    def test_two_clusters(self, made):
        others = slices.run(made("gaussian")[0]).slices[1].others
        assert {tuple(token) for token in others.tolist()} == {(0.0, 0.0), (1.0, 1.0)}

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_corners_lie_in_the_box(self, dtype):
        box = Box.parse("1/3:0.7,-0.7:-1/3", 2)
        low, high = slices.corners(box, dtype)
        assert bool(box.contains(torch.stack([low, high])).all())
        assert Fraction(low[0].item()) - box.lower[0] < Fraction(1, 10**7)

    def test_too_many_tokens_to_draw(self):
        data = slices.run(construct("x - mean(y)", 1e-6, d=1, n=2**21))
        assert data.slices == ()
        assert "too many" in data.reason


def test_degrees_end_where_the_certificate_says(made):
    construction = made("gaussian")[0]
    (curve,) = degrees.run(construction)
    constants = construction.certificate.constants["kernels"]
    assert len(curve.expressions) == len(constants) == 2
    assert curve.proved
    assert curve.degrees == tuple(range(constants[0]["interpolation_degree"] + 1))
    assert curve.dropped[constants[0]["degree"]] == constants[0]["dropped"]
    assert all(a > b for a, b in zip(curve.dropped, curve.dropped[1:], strict=False))


def test_degrees_in_two_coordinates_are_estimates():
    construction = construct("mean(1/(1 + norm2(x - y)))", 1e-2, d=2)
    (curve,) = degrees.run(construction)
    assert not curve.proved
    estimate = dict(zip(curve.degrees, curve.dropped, strict=True))
    degree, proved = curve.chosen
    assert proved / 10 < estimate[degree] <= proved
    assert "estimated, not proved" in degrees.plot([curve])[0].alt


def test_degrees_stop_in_time(made):
    (curve,) = degrees.run(made("soft_rank")[0], seconds=0.0)
    assert 2 <= len(curve.degrees) < 10


class TestTiming:
    @pytest.mark.parametrize(
        ("tokens", "expected"),
        [
            ("3", [3]),
            ("..40", [40]),
            ("..300", [64, 128, 256, 300]),
            ("100..200", [128, 200]),
            ("any", [2**k for k in range(6, 18)]),
        ],
    )
    def test_counts(self, tokens, expected):
        assert timing.counts(Tokens.parse(tokens)) == expected

    def test_all_pairs_or_not(self, made):
        assert timing.run(made("gaussian")[0], 0.01).pairwise
        data = timing.run(made("figure_2")[0], 0.01)
        assert not data.pairwise
        assert data.common == 3
        assert data.ratio is not None

    def test_network_goes_further(self, made):
        data = timing.run(made("soft_rank")[0], 1.0)
        assert max(data.network) >= 4 * max(data.target)


class TestNumbers:
    @pytest.mark.parametrize("value", [0.000267412978424764, 1e-300, 0.1, 1 / 3, 12345.678, 5e-324, 1e300, 2.0])
    def test_rounded_up(self, value):
        shown = Decimal(rounded_up(value))
        assert shown >= Decimal(value)
        assert shown <= Decimal(value) * Decimal("1.0101")

    def test_texts(self):
        assert rounded_up(0.000267412978424764) == "2.68e-4"
        assert (nearest(1e-3), nearest(0), nearest(1e-12), nearest(123456.0)) == ("0.001", "0", "1e-12", "123000")
        assert (duration(3.21e-6), duration(0.045), duration(1.3), duration(75.0)) == (
            "3.21 µs",
            "45 ms",
            "1.3 s",
            "75 s",
        )
        assert (count(2**30), count(65536), count(3)) == ("2³⁰", "65\u202f536", "3")


def test_what_was_measured_is_not_rounded_up():
    def words(kind):
        return budget._shown(budget.Bar("", kind, 6.2346e-6))

    assert (words("measured"), words("proved"), words("certified")) == ("6.23e-6", "6.24e-6", "6.24e-6")
