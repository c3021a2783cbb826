//! The environment variables that stores are configured by.

use std::collections::BTreeMap;
use std::fmt;

/// Variables, from which credentials and the like are taken. Shown as their names alone.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// This process's own.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(std::env::vars_os().filter_map(text).collect())
    }

    /// These and no others.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Environment(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The value of a variable that is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Those whose names begin with `prefix`: the names in lower case, as the builders of the clients read them.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (String, &str)> {
        let named = self.0.iter().filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty());
        named.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
