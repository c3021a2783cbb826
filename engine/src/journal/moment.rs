//! Points in time, as people and machines read them.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, to the millisecond: `2026-12-01T03:12:44.120Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Milliseconds since 1970.
    millis: u64,
}

const DAY_MILLIS: u64 = 86_400_000;

impl Moment {
    /// Now.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// The time from `earlier` to here; none if it is not earlier.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_millis(self.millis.saturating_sub(earlier.millis))
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let millis = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Moment { millis: u64::try_from(millis).unwrap_or(u64::MAX) }
    }
}

/// Days since 1970 as year, month and day, by counting years that begin in March, so that the leap day comes last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The inverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.millis / DAY_MILLIS);
        let millis = self.millis % DAY_MILLIS;
        let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", millis % 1000)
    }
}

/// A text that is no point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no point in time such as `2026-12-01T03:12:44.120Z`")]
pub struct NoMoment;

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let numbers: Vec<u64> = text
            .strip_suffix('Z')
            .ok_or(NoMoment)?
            .split(['-', 'T', ':', '.'])
            .map(|digits| digits.parse().map_err(|_| NoMoment))
            .collect::<Result<_, _>>()?;
        let [year, month @ 1..=12, day @ 1..=31, hours @ ..24, minutes @ ..60, seconds @ ..60, millis @ ..1000] =
            numbers[..]
        else {
            return Err(NoMoment);
        };
        let days = days(year, month, day).filter(|_| year < 1_000_000).ok_or(NoMoment)?;
        Ok(Moment { millis: days * DAY_MILLIS + ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis })
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        let check = |seconds: u64, text: &str| {
            assert_eq!(Moment { millis: seconds * 1000 }.to_string(), text);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400, "2000-02-29T00:00:00.000Z");
        check(1_709_251_199, "2024-02-29T23:59:59.000Z");
        check(1_796_166_764, "2026-12-01T23:12:44.000Z");
        check(4_107_542_400, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn other_texts_are_none() {
        for text in
            ["", "Z", "2026-12-01", "2026-13-01T00:00:00.000Z", "2026-12-01T00:00:00Z", "0000-01-01T00:00:00.000Z"]
        {
            assert_eq!(text.parse::<Moment>(), Err(NoMoment), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_text_says_all(millis in 0..10_000_000_000_000u64) {
            let moment = Moment { millis };
            prop_assert_eq!(moment.to_string().parse(), Ok(moment));
        }
    }
}
