//! The list of kinds, as values: what the engine knows of a kind without knowing its type.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Node, NodeKind, OpenCpu, OpenDevice, Role};

type Parse = fn(serde_yaml::Value) -> Result<Box<dyn Node>, String>;

/// A kind of node: its name, its manual, and how its options become a node.
pub struct Kind {
    name: &'static str,
    role: Role,
    schema: Value,
    example: &'static str,
    revision: u32,
    incidental: &'static [&'static str],
    parse: Parse,
}

impl Kind {
    /// The kind that `K` implements.
    ///
    /// # Panics
    /// If its name does not begin with a role: the list of kinds is ours.
    pub fn of<K: NodeKind>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
        let schema = settings.into_generator().into_root_schema_for::<K>();
        Kind {
            name: K::NAME,
            role: Role::of(K::NAME).expect("a kind's name begins with its role"),
            schema: schema.to_value(),
            example: K::EXAMPLE,
            revision: K::REVISION,
            incidental: K::INCIDENTAL,
            parse: |with| match serde_yaml::with::singleton_map_recursive::deserialize::<K, _>(with) {
                Ok(node) => Ok(Box::new(node)),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// The name in pipeline files.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The JSON Schema of its options, with their docs.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// A node of this kind as one would write it.
    pub fn example(&self) -> &'static str {
        self.example
    }

    /// See [`NodeKind::REVISION`].
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// See [`NodeKind::INCIDENTAL`].
    pub fn incidental(&self) -> &'static [&'static str] {
        self.incidental
    }

    /// A node from its options, which were checked against the schema.
    ///
    /// # Errors
    /// What the schema could not say.
    pub fn parse(&self, with: serde_yaml::Value) -> Result<Box<dyn Node>, String> {
        (self.parse)(with)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

/// A kind, shared.
pub type KindRef = Arc<Kind>;

/// The kinds that a program knows, in the order in which they were listed, and the devices that it can open.
#[derive(Clone)]
pub struct Registry {
    kinds: IndexMap<&'static str, KindRef>,
    devices: IndexMap<&'static str, Arc<dyn OpenDevice>>,
}

impl Registry {
    /// No kinds, and the CPU.
    pub fn new() -> Self {
        Registry { kinds: IndexMap::new(), devices: IndexMap::new() }.with_device(OpenCpu)
    }

    /// Adds the kind that `K` implements.
    ///
    /// # Panics
    /// If there is one of that name.
    pub fn with<K: NodeKind>(mut self) -> Self {
        let before = self.kinds.insert(K::NAME, KindRef::new(Kind::of::<K>()));
        assert!(before.is_none(), "two kinds are called `{}`", K::NAME);
        self
    }

    /// Adds a kind of device, in the place of one of the same name.
    pub fn with_device(mut self, device: impl OpenDevice + 'static) -> Self {
        self.devices.insert(device.kind(), Arc::new(device));
        self
    }

    /// What opens devices of the kind `name`.
    pub fn device(&self, name: &str) -> Option<&dyn OpenDevice> {
        self.devices.get(name).map(|device| &**device)
    }

    /// The kinds of devices that it can open.
    pub fn device_kinds(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.devices.keys().copied()
    }

    /// The kind called `name`.
    pub fn get(&self, name: &str) -> Option<&KindRef> {
        self.kinds.get(name)
    }

    /// All kinds.
    pub fn iter(&self) -> impl Iterator<Item = &KindRef> {
        self.kinds.values()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Registry::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds.keys().chain(self.devices.keys())).finish()
    }
}
