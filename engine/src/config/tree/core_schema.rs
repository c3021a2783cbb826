//! The types of plain scalars, by YAML 1.2's core schema.

use super::Scalar;

/// What a scalar written without quotes is.
pub(in super::super) fn plain_scalar(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Number(f64::NAN),
        _ => {}
    }
    integer(text)
        .map(Scalar::Integer)
        .or_else(|| number(text).map(Scalar::Number))
        .unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// `-12`, `0o17`, `0x1F`; none where it is too large to be one.
pub(super) fn integer(text: &str) -> Option<i128> {
    if let Some(digits) = text.strip_prefix("0o") {
        return unsigned(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return unsigned(digits, 16);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let value = unsigned(digits, 10)?;
    Some(if text.starts_with('-') { -value } else { value })
}

fn unsigned(digits: &str, radix: u32) -> Option<i128> {
    let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    all.then(|| i128::from_str_radix(digits, radix).ok()).flatten()
}

/// `-1.5e3`, `.5`, `1.`, `.inf`.
pub(super) fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_digits = exponent.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    let well_formed = digits(whole)
        && digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent_digits.is_none_or(|text| !text.is_empty() && digits(text));
    well_formed.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Scalar) {
        assert_eq!(plain_scalar(text), expected, "{text}");
    }

    #[test]
    fn types_are_those_of_yaml_1_2() {
        check("~", Scalar::Null);
        check("True", Scalar::Bool(true));
        for text in ["yes", "no", "on", "1_000", "1:30", "0b1", "-0x1", "+", ".", "e5", "1e", "--1", "tRue", "5%"] {
            check(text, Scalar::Text(text.into()));
        }
        check("-12", Scalar::Integer(-12));
        check("0o17", Scalar::Integer(15));
        check("0x1F", Scalar::Integer(31));
        check("012", Scalar::Integer(12));
        check("1.5e3", Scalar::Number(1500.0));
        check(".5", Scalar::Number(0.5));
        check("-.inf", Scalar::Number(f64::NEG_INFINITY));
        check("99999999999999999999999999999999999999999", Scalar::Number(1e41));
    }
}
