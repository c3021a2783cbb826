//! The header `Retry-After`: seconds, or a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A server that asks for more is not waited for so long.
const LONGEST: Duration = Duration::from_secs(300);

/// How long a server asks to be left alone from `now` on, if the header's text says it.
pub(super) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let pause = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = UNIX_EPOCH + Duration::from_secs(seconds_of(text)?);
            until.duration_since(now).unwrap_or_default()
        }
    };
    Some(pause.min(LONGEST))
}

/// The seconds since 1970 of `Wed, 21 Oct 2015 07:28:00 GMT`, the form that HTTP dates have. `Last-Modified` has it too.
pub(super) fn seconds_of(date: &str) -> Option<u64> {
    let mut words = date.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        .iter()
        .position(|name| *name == month)? as i64
        + 1;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    let (hours, minutes, seconds) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let is_date = (1970..10_000).contains(&year) && (1..=31).contains(&day);
    if !is_date || words.next() != Some("GMT") || clock.next().is_some() {
        return None;
    }
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0..61).contains(&seconds) {
        return None;
    }
    // Years are counted from March, so that the leap day comes last in them.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1 - 719_468;
    u64::try_from(days * 86_400 + hours * 3_600 + minutes * 60 + seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970() {
        for (date, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(1_445_412_480)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Wed, 21 Oct 2015 07:28:00", None),
            ("Wed, 21 Oct 2015 27:28:00 GMT", None),
            ("2015-10-21", None),
            ("", None),
        ] {
            assert_eq!(seconds_of(date), expected, "{date}");
        }
    }

    #[test]
    fn a_pause_is_in_seconds_or_until_a_date_and_not_for_ever() {
        let now = UNIX_EPOCH + Duration::from_secs(1_445_412_470);
        for (text, expected) in [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(10)),
            ("Wed, 21 Oct 2014 07:28:00 GMT", Some(0)),
            ("86400", Some(300)),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
