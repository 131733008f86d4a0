//! Tests: the text of refusals.

use crate::privacy_loss::PrivacyLoss;

fn refusal(text: &str) -> (&'static str, String) {
    let error = text.parse::<PrivacyLoss>().expect_err(text);
    (error.code(), error.to_string())
}

/// The refusal is the sentence with its column, the text with a caret beneath, and what is allowed.
fn assert_refused(code: &'static str, text: &str, sentence: &str, column: usize, allowed: &str) {
    let caret = " ".repeat(column - 1);
    let allowed = if allowed.is_empty() { String::new() } else { format!("\n  allowed: {allowed}") };
    let whole = format!("{sentence} (column {column})\n  {text}\n  {caret}^{allowed}");
    assert_eq!(refusal(text), (code, whole));
}

#[test]
fn a_refusal_says_what_where_and_what_instead() {
    let a_loss = "a loss such as gaussian(sigma=5), or `(`";
    let numbers = "numbers like 42, 0.5, 1e-6 or 1/3";
    let counts = "whole numbers from 0 to 18446744073709551615";
    let gaussian = "gaussian(sigma | variance, sensitivity)";
    let truncated = "truncated_laplace(scale, bound, sensitivity) or truncated_laplace(epsilon=…, delta=…, sensitivity=…)";
    let drawn = "without_replacement(sample, population, loss)";
    let pair = "`:` between an order and its epsilon in renyi(order: epsilon, …)";
    for (text, sentence, column, allowed) in [
        ("", "the text ends too early", 1, a_loss),
        ("pure(1) +", "the text ends too early", 10, a_loss),
        ("-3*pure(1)", "`-` is not expected here", 1, a_loss),
        ("pure(1) + µ(2)", "`µ` is not expected here", 11, a_loss),
        ("pure(1) pure(2)", "`pure` is not expected here", 9, "`+`, `*` or the end of the text"),
        ("(pure(1) + pure(2)", "the text ends too early", 19, "`+`, `*` or `)`"),
        ("pure 1", "`1` is not expected here", 6, "`(` after the name of a loss"),
        ("3 pure(1)", "`pure` is not expected here", 3, "`*` between a count and its loss"),
        ("pure(1", "the text ends too early", 7, "`,` or `)` in pure(epsilon)"),
        ("laplace(x)", "`x` is not a number", 9, numbers),
        ("laplace(1/0)", "`1/0` is not a number", 9, numbers),
        ("group(pure(1), 2)", "`pure` is not a number", 7, numbers),
        ("pure(1e999)", "the exponent of `1e999` is too large", 6, "exponents from -400 to 400"),
        ("pure(1)*-1", "`-1` is not a count", 9, counts),
        ("pure(1)*2.5", "`2.5` is not a count", 9, counts),
        ("pure(1)*18446744073709551616", "`18446744073709551616` is not a count", 9, counts),
        ("1e10*pure(1)*1e10", "the counts of this loss multiply to too many", 14, counts),
        ("gaussian(eps=5)", "gaussian has no argument `eps`", 10, gaussian),
        ("gaussian()", "gaussian needs sigma or variance", 1, gaussian),
        ("gaussian(5, variance=25)", "gaussian takes sigma or variance, not both", 13, gaussian),
        ("gaussian(sigma=5, 2)", "an argument after a named one needs its name", 19, gaussian),
        ("pure(0,5)", "pure has no argument in this place", 8, "pure(epsilon)"),
        ("pure(1, epsilon=2)", "epsilon is given twice", 9, "pure(epsilon)"),
        ("pure(1) + group(2)", "group needs a loss", 11, "group(size, loss)"),
        ("truncated_laplace(epsilon=1)", "truncated_laplace needs delta", 1, truncated),
        ("threshold(1e-6)", "threshold needs a loss", 1, "threshold(delta, loss)"),
        ("threshold(pure(1))", "`pure` is not a number", 11, numbers),
        ("threshold(loss=pure(1))", "threshold needs delta", 1, "threshold(delta, loss)"),
        ("without_replacement(9, pure(1))", "`pure` is not a number", 24, numbers),
        ("without_replacement(sample=9)", "without_replacement needs population", 1, drawn),
        ("without_replacement(9, 10)", "without_replacement needs a loss", 1, drawn),
        ("without_replacement(rate=1)", "without_replacement has no argument `rate`", 21, drawn),
        ("renyi 2", "`2` is not expected here", 7, "`(` after the name of a loss"),
        ("2*renyi()", "renyi needs an order and its epsilon", 3, "renyi(order: epsilon, …)"),
        ("renyi(2, 0.1)", "`,` is not expected here", 8, pair),
        ("renyi(2=0.1)", "`=` is not expected here", 8, pair),
        ("renyi(order=2, epsilon=0.1)", "`order` is not a number", 7, numbers),
        ("renyi(2:)", "`)` is not expected here", 9, numbers),
        ("renyi(2: 0.1,)", "`)` is not expected here", 14, numbers),
        ("renyi(2: 0.1 3: 1)", "`3` is not expected here", 14, "`,` or `)` in renyi(order: epsilon, …)"),
        ("renyi(2: 0.1", "the text ends too early", 13, "`,` or `)` in renyi(order: epsilon, …)"),
        ("pure(2: 0.1)", "`:` is not expected here", 7, "`,` or `)` in pure(epsilon)"),
        (
            "truncated_laplace(epsilon=1, bound=9)",
            "truncated_laplace takes bound or epsilon, not both",
            30,
            truncated,
        ),
        (
            "truncated_laplace(epsilon=1, delta=1e-390)",
            "doubles cannot hold the bound for this epsilon and delta",
            1,
            truncated,
        ),
    ] {
        assert_refused("core.loss.language", text, sentence, column, allowed);
    }
}

#[test]
fn a_parameter_is_refused_in_the_words_of_its_check() {
    for (text, sentence, column) in [
        ("gaussian(sigma=0)", "the sigma of gaussian must be above 0, but 0 was given", 10),
        ("gaussian(-1/3)", "the sigma of gaussian must be above 0, but -1/3 was given", 10),
        ("gaussian(variance=0)", "the variance of gaussian must be above 0, but 0 was given", 10),
        ("gaussian(5, -1)", "the sensitivity of gaussian must be at least 0, but -1 was given", 13),
        ("laplace(2, -1)", "the sensitivity of laplace must be at least 0, but -1 was given", 12),
        ("laplace(epsilon=0)", "the epsilon of laplace must be above 0, but 0 was given", 9),
        (
            "laplace(epsilon=1, sensitivity=0)",
            "the sensitivity of laplace must be above 0, but 0 was given",
            20,
        ),
        (
            "truncated_laplace(epsilon=1, delta=0.6)",
            "the delta of truncated_laplace must be above 0 and at most 0.5, but 0.6 was given",
            30,
        ),
        ("approx(1, 1)", "the delta of approx must be at least 0 and below 1, but 1 was given", 11),
        (
            "randomized_response(1, 1)",
            "the categories of randomized_response must be at least 2, but 1 was given",
            24,
        ),
        (
            "pure(1)*2 + subsampled(1.5, pure(1))",
            "the rate of subsampled must be between 0 and 1, but 1.5 was given",
            24,
        ),
        ("group(0, pure(1))", "the size of group must be above 0, but 0 was given", 7),
        (
            "group(2.5, pure(1))",
            "the size of group must be a whole number up to 18446744073709551615, but 2.5 was given",
            7,
        ),
        (
            "threshold(1, pure(1))",
            "the delta of threshold must be at least 0 and below 1, but 1 was given",
            11,
        ),
        ("threshold(0, pure(-1))", "the epsilon of pure must be at least 0, but -1 was given", 19),
        (
            "without_replacement(population=10, sample=11, pure(1))",
            "the sample of without_replacement must be at most 10, the population, but 11 was given",
            36,
        ),
        (
            "without_replacement(0, 0, pure(1))",
            "the population of without_replacement must be above 0, but 0 was given",
            24,
        ),
        (
            "without_replacement(0.5, 2, pure(1))",
            "the sample of without_replacement must be a whole number up to 18446744073709551615, but 0.5 was given",
            21,
        ),
        ("renyi(1: 2)", "the order of renyi must be above 1, but 1 was given", 7),
        ("renyi(2: 1, 3: -1)", "the epsilon of renyi must be at least 0, but -1 was given", 16),
        (
            "renyi(2: 1, 1.5: 1)",
            "the order of renyi must be above 2, the one before it, but 1.5 was given",
            13,
        ),
    ] {
        assert_refused("core.loss.parameter", text, sentence, column, "");
    }
}

#[test]
fn an_unknown_name_meets_all_names() {
    let names = "gaussian, laplace, discrete_laplace, discrete_gaussian, truncated_laplace, \
        truncated_discrete_laplace, randomized_response, unary_encoding, exponential, permute_and_flip, \
        pure, approx, zcdp, subsampled, group, threshold, without_replacement, renyi, composed";
    assert_refused("core.loss.language", "2*gausian(5)", "there is no loss called `gausian`", 3, names);
}

#[test]
fn a_text_of_several_lines_is_shown_by_the_line() {
    let (_, text) = refusal("pure(1)\n+ zcdp(0.1)\n\t+ gaussian(\n5");
    let expected = "the text ends too early (line 4, column 2)\n  5\n   ^\n  allowed: `,` or `)` in ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn limits_are_refused_by_name() {
    let deep = refusal(&"(".repeat(100));
    assert!(deep.1.starts_with("the losses are nested too deeply (column 66)\n"), "{}", deep.1);
    assert!(deep.1.ends_with("\n  allowed: up to 64 losses one within another"), "{}", deep.1);
    let many = refusal(&vec!["pure(1)"; 100_001].join("+"));
    assert!(many.1.starts_with("there are too many losses (column 800001)\n"), "{}", many.1);
    assert!(many.1.ends_with("\n  allowed: up to 100000"), "{}", many.1);
    let digits = refusal(&format!("gaussian({})", "7".repeat(5_001)));
    assert!(digits.1.starts_with("the number is too long (column 1)\n"), "{}", digits.1);
    assert!(digits.1.ends_with("\n  allowed: numbers of up to 10000 characters"), "{}", digits.1);
    let epsilon = refusal(&format!("renyi(2: {}e9)", "7".repeat(9_992)));
    assert!(epsilon.1.starts_with("the number is too long (column 10)\n"), "{}", epsilon.1);
    let orders = refusal(&format!("renyi({}", "2:1,".repeat(1_001)));
    assert!(orders.1.starts_with("there are too many orders (column 4007)\n"), "{}", orders.1);
    assert!(orders.1.ends_with("\n  allowed: up to 1000 in one loss"), "{}", orders.1);
    let long = refusal(&" ".repeat((1 << 20) + 1));
    assert_eq!(long.1, "a loss may be at most 1048576 bytes of text, but 1048577 were given");
    for (code, _) in [deep, many, digits, epsilon, orders, long] {
        assert_eq!(code, "core.loss.language");
    }
}
