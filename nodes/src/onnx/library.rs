//! Where ONNX Runtime is, and how it gets into the process.
//!
//! It is a library of its own, which people have with their Python or put beside the program; nothing here downloads it.
//! Once it is loaded it stays, as it must: it can be neither unloaded nor loaded twice.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ort::environment::Environment;

use super::error::OnnxError;

/// The variable that names the library.
pub const SETTING: &str = "FLOWGPU_ONNXRUNTIME";

/// What to do where there is none.
pub const HELP: &str = "`pip install onnxruntime` (`onnxruntime-gpu` for GPUs) in the Python environment that is active, put \
                        `libonnxruntime.so` beside the program, or name it with `FLOWGPU_ONNXRUNTIME`";

/// Where a library was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// By what.
    pub by: FoundBy,
}

impl Found {
    /// The version that the file's name ends with, where it has one.
    pub fn version(&self) -> Option<String> {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let (_, version) = path.file_name()?.to_str()?.split_once(".so.")?;
        Some(version.to_owned())
    }
}

/// By what a library was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// `FLOWGPU_ONNXRUNTIME` names it.
    Setting,
    /// It lies beside the program.
    Beside,
    /// It belongs to the active Python environment.
    Python,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoundBy::Setting => "named by FLOWGPU_ONNXRUNTIME",
            FoundBy::Beside => "beside the program",
            FoundBy::Python => "of the Python environment",
        })
    }
}

/// Where a library is looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The file that is named.
    pub named: Option<OsString>,
    /// The program's folder.
    pub beside: Option<PathBuf>,
    /// Folders of Python environments that are active.
    pub environments: Vec<PathBuf>,
    /// The interpreter to ask where its packages are.
    pub python: Option<OsString>,
}

impl Places {
    /// Those of this process.
    pub fn of_process() -> Self {
        let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
        let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(PathBuf::from).collect();
        let named = env::var_os(SETTING).filter(|named| !named.is_empty());
        Self { named, beside, environments, python: Some("python3".into()) }
    }

    /// The library that is named, or else the first one that is found.
    ///
    /// # Errors
    /// One that is named and not there, or none anywhere.
    pub fn find(&self) -> Result<Found, OnnxError> {
        if let Some(named) = &self.named {
            let path = PathBuf::from(named);
            if path.is_file() {
                return Ok(Found { path, by: FoundBy::Setting });
            }
            return Err(OnnxError::NoLibrary(format!("`{SETTING}` names `{}`, which is no file", path.display())));
        }
        let beside = self.beside.as_deref().and_then(library_in);
        if let Some(path) = beside {
            return Ok(Found { path, by: FoundBy::Beside });
        }
        let of_environment = self
            .environments
            .iter()
            .find_map(|environment| packages_of(environment).find_map(|packages| of_packages(&packages)));
        let path = of_environment.or_else(|| self.python.as_ref().and_then(asked));
        match path {
            Some(path) => Ok(Found { path, by: FoundBy::Python }),
            None => {
                Err(OnnxError::NoLibrary("it is not beside the program and not in the Python environment".to_owned()))
            }
        }
    }
}

/// `lib/python3.X/site-packages` of an environment.
fn packages_of(environment: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join("site-packages"))
}

fn of_packages(packages: &Path) -> Option<PathBuf> {
    library_in(&packages.join("onnxruntime/capi"))
}

/// `libonnxruntime.so`, or with a version behind it; of several the last by name.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let rest = name.strip_prefix("libonnxruntime.");
        rest.is_some_and(|rest| rest == "so" || rest.starts_with("so.") || rest.ends_with("dylib"))
    };
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(is_library).max()
}

/// Asks an interpreter for the place of its package, which it finds without running any of it.
fn asked(python: &OsString) -> Option<PathBuf> {
    let script = "import importlib.util as u; s = u.find_spec('onnxruntime'); print(s.submodule_search_locations[0] if s else '')";
    let answer = Command::new(python).args(["-I", "-c", script]).output().ok()?;
    let folder = String::from_utf8(answer.stdout).ok()?;
    let folder = folder.trim_end();
    if folder.is_empty() { None } else { library_in(&Path::new(folder).join("capi")) }
}

/// The library keeps its state for the whole process, and so does the handle to it.
static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

fn told(loaded: &'static Result<Library, String>) -> Result<&'static Library, OnnxError> {
    loaded.as_ref().map_err(|reason| OnnxError::NoLibrary(reason.clone()))
}

/// ONNX Runtime in this process.
pub struct Library {
    /// Where it is.
    pub found: Found,
    /// Its version.
    pub version: String,
    pub(super) environment: Environment,
}

impl Library {
    /// The one of this process, loaded if it is not yet.
    ///
    /// # Errors
    /// None that is found, or one that is too old or broken; the same each time.
    pub fn of_process() -> Result<&'static Library, OnnxError> {
        match LIBRARY.get() {
            Some(loaded) => told(loaded),
            None => Self::load_from(Places::of_process().find()?),
        }
    }

    /// Loads the library that was found. Where another one was loaded before, that one stays.
    ///
    /// # Errors
    /// As [`Library::of_process`].
    pub fn load_from(found: Found) -> Result<&'static Library, OnnxError> {
        told(LIBRARY.get_or_init(|| Self::load(found)))
    }

    fn load(found: Found) -> Result<Self, String> {
        let refused =
            |reason: &dyn fmt::Display| format!("`{}` ({}) cannot be used: {reason}", found.path.display(), found.by);
        let builder = ort::init_from(&found.path).map_err(|error| refused(&error))?;
        let environment =
            builder.with_name("flowgpu").with_telemetry(false).build().map_err(|error| refused(&error))?;
        let version = found.version().unwrap_or_else(|| {
            // Then what it was built from is all that it says.
            ort::info().split(',').next().unwrap_or_default().to_owned()
        });
        Ok(Self { found, version, environment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_beside_the_program_is_taken_before_that_of_an_environment_and_the_newest_of_several() {
        let folder = tempfile::tempdir().unwrap();
        let capi = folder.path().join("env/lib/python3.12/site-packages/onnxruntime/capi");
        fs::create_dir_all(&capi).unwrap();
        for name in ["libonnxruntime.so.1.31.0", "libonnxruntime.so.1.32.0", "libonnxruntime_providers_shared.so"] {
            fs::write(capi.join(name), "").unwrap();
        }
        let beside = folder.path().join("bin");
        fs::create_dir(&beside).unwrap();
        let environments = vec![folder.path().join("none"), folder.path().join("env")];
        let places = Places { beside: Some(beside.clone()), environments, ..Places::default() };
        let found = places.find().unwrap();
        assert_eq!((found.path.clone(), found.by), (capi.join("libonnxruntime.so.1.32.0"), FoundBy::Python));
        assert_eq!(found.version().as_deref(), Some("1.32.0"));
        fs::write(beside.join("libonnxruntime.so"), "").unwrap();
        let found = places.find().unwrap();
        assert_eq!((found.path.clone(), found.by), (beside.join("libonnxruntime.so"), FoundBy::Beside));
        assert_eq!(found.version(), None);
        assert!(Places::default().find().unwrap_err().to_string().starts_with("there is no ONNX Runtime: "));
    }
}
