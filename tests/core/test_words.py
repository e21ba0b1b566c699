"""Words of all scripts, and texts that look alike."""

import time

import pytest

from ace_bench.core.words import has_words, visible, words_of

FOUND = {
    "北京": ["答案是北京。", "北京市", "the answer is 北京", "北\u200b京"],
    "京": ["北京"],  # no script without blanks shows where a word ends
    "東京": ["東京です"],
    "กรุงเทพ": ["คำตอบคือกรุงเทพมหานคร"],
    "ວຽງຈັນ": ["ຄຳຕອບແມ່ນວຽງຈັນ"],
    "ភ្នំពេញ": ["ចម្លើយគឺភ្នំពេញ។"],
    "ပြင်ဦးလွင်": ["အဖြေမှာပြင်ဦးလွင်ဖြစ်သည်"],
    "서울": ["답은 서울입니다.", "서울은 수도이다", "서울"],
    "iPhone": ["我的iPhone手机"],
    "ABC": ["ＡＢＣ社"],
    "ガス": ["ｶﾞｽと電気"],
    "café": ["un cafe\u0301 noir"],
    "कि": ["कि है"],
    "Paris": ["Paris’s weather", "“Paris”"],
    "Ankara": ["Ankara'dır"],
    "eau": ["de l’eau"],
    "well": ["well-known"],
    "don't": ["I don’t know"],
    "5": ["3-5", "is 5.", "5, 6", "$5", "5%", "5个", "４、５"],
    "1,000": ["价格是1,000元"],
    "2020": ["05.12.2020"],
    "-7": ["is −7"],
    "C++": ["I use C++."],
}
NOT_FOUND = {
    "art": ["start", "artist", "ｓｔａｒｔ"],
    "クラス": ["クラスター"],
    "アメリカ": ["ラテンアメリカ"],
    "ก": ["กิ"],
    "한국": ["한국어"],
    "울": ["서울"],
    "क": ["कि"],
    "cafe": ["café", "cafe\u0301"],
    "can": ["I can't", "I can’t"],
    "5": ["1.5", ".5", "5,000", "-5", "−5", "15", "５０"],
    "1000": ["1,000"],  # the numeric grader reads both
    "000": ["5,000"],
    "C++": ["C++11"],
    "id": ["user_id"],
}


@pytest.mark.parametrize(("cases", "expected"), [(FOUND, True), (NOT_FOUND, False)])
def test_whole_words_are_found_in_every_script(cases, expected):
    wrong = [
        (words, text)
        for words, texts in cases.items()
        for text in texts
        if has_words(visible(text), visible(words)) is not expected
    ]
    assert not wrong


@pytest.mark.parametrize("text", ["1" * 100_000, "1," * 50_000, "1.5 " * 25_000, "(" * 100_000, "京" * 100_000])
def test_long_texts_take_linear_time(text):
    started = time.process_time()
    has_words(text, "5")
    assert time.process_time() - started < 2


def test_what_nobody_sees_goes_and_what_one_sees_stays():
    assert visible("a\u200bb\u200fc\u00add\ufeffe\u2060f\ufe0fg\x00\x92") == "abcdefg"
    assert visible("a\u00a0b\u3000c\u2009d\r\ne\u2028f\x85g") == "a b c d\ne\nf\ng"
    assert visible("Ａｂ１，ｶﾞ") == "Ab1,ガ"
    assert visible("a\u0301 l’x \u2011 −") == "\u00e1 l'x - -"
    for seen in ("x²", "½", "ﬁ", "Straße", "İ", "“a”", "a–b", "é"):
        assert visible(seen) == seen


def test_words_of_scripts_without_blanks_are_characters():
    assert words_of("the 北京 is アメリカ x-y") == ["the", "北", "京", "is", "アメリカ", "x-y"]
