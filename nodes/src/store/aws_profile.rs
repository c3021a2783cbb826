//! The files `~/.aws/credentials` and `~/.aws/config`, where the environment has no keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::environment::Environment;
use super::error::{ErrorKind, StoreError};

/// No file of these is larger by far.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the chosen profile says. Never shown.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) access_key_id: Option<String>,
    pub(super) secret_access_key: Option<String>,
    pub(super) session_token: Option<String>,
    pub(super) region: Option<String>,
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Profile {
    /// The profile that `AWS_PROFILE` names, or the one called `default`; nothing if there are no such files.
    ///
    /// # Errors
    /// If `AWS_PROFILE` names one that is in neither file.
    pub(super) fn read(environment: &Environment) -> Result<Self, StoreError> {
        let file = |variable: &str, name: &str| {
            let home = environment.get("HOME").map(|home| PathBuf::from(home).join(".aws").join(name));
            environment.get(variable).map(PathBuf::from).or(home).map(sections).unwrap_or_default()
        };
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let config = file("AWS_CONFIG_FILE", "config");
        let named = environment.get("AWS_PROFILE");
        let name = named.unwrap_or("default");
        let in_config = match name {
            "default" => config.get("default").or_else(|| config.get("profile default")),
            name => config.get(&format!("profile {name}")),
        };
        let in_credentials = credentials.get(name);
        if named.is_some() && in_credentials.is_none() && in_config.is_none() {
            let mut known: Vec<_> = credentials.keys().map(|name| format!("`{name}`")).collect();
            known.extend(config.keys().filter_map(|name| Some(format!("`{}`", name.strip_prefix("profile ")?))));
            known.sort();
            known.dedup();
            let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            let message = format!("`AWS_PROFILE` names `{name}`, which the files in `~/.aws` do not have");
            return Err(StoreError::new(ErrorKind::Config, message).help(format!("profiles: {known}")));
        }
        let value = |name: &str| {
            let sections = [in_credentials, in_config];
            sections.into_iter().flatten().find_map(|section| section.get(name)).cloned()
        };
        Ok(Profile {
            access_key_id: value("aws_access_key_id"),
            secret_access_key: value("aws_secret_access_key"),
            session_token: value("aws_session_token"),
            region: value("region"),
        })
    }
}

/// The sections of a file; none if it cannot be read.
fn sections(path: PathBuf) -> Sections {
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_FILE_BYTES => {}
        _ => return Sections::new(),
    }
    parse(&fs::read_to_string(path).unwrap_or_default())
}

fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut section = None;
    for line in text.lines() {
        // Lines that are indented belong to a setting that has settings of its own, of which none is read here.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            section = Some(sections.entry(name).or_default());
        } else if let (Some(section), Some((name, value))) = (&mut section, line.split_once('=')) {
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# keys\n[default]\naws_access_key_id = A1\naws_secret_access_key=s/1=\n\n[ work ]\n\
        aws_access_key_id=A2\naws_secret_access_key=s2\naws_session_token = t2\n";
    const CONFIG: &str =
        "[default]\nregion = eu-west-1\ns3 =\n  region = not-this\n[profile work]\nregion=ap-south-1\n";

    fn read(profile: Option<&str>) -> Result<Profile, StoreError> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".aws")).unwrap();
        fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        fs::write(home.path().join(".aws/config"), CONFIG).unwrap();
        let variables = [("HOME", home.path().to_str().unwrap()), ("AWS_PROFILE", profile.unwrap_or_default())];
        Profile::read(&Environment::of(variables))
    }

    fn check(profile: Option<&str>, expected: [Option<&str>; 4]) {
        let read = read(profile).unwrap();
        let values = [read.access_key_id, read.secret_access_key, read.session_token, read.region];
        assert_eq!(values, expected.map(|value| value.map(str::to_owned)));
    }

    #[test]
    fn the_chosen_profile_is_read_from_both_files() {
        check(None, [Some("A1"), Some("s/1="), None, Some("eu-west-1")]);
        check(Some("work"), [Some("A2"), Some("s2"), Some("t2"), Some("ap-south-1")]);
    }

    #[test]
    fn a_profile_that_is_not_there_is_an_error_that_names_those_that_are() {
        let error = read(Some("wrok")).err().unwrap();
        assert!(error.to_string().contains("`wrok`"), "{error}");
        assert_eq!(error.what_to_do(), Some("profiles: `default`, `work`"));
    }

    #[test]
    fn no_files_are_no_profile() {
        assert!(Profile::read(&Environment::of([("HOME", "/nowhere")])).unwrap() == Profile::default());
        assert!(Profile::read(&Environment::default()).unwrap() == Profile::default());
    }
}
