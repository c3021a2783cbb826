//! The JSON Schema of a whole pipeline file, for editors.

use serde_json::{Map, Value as Json, json};

use super::KindSchemas;
use super::layout::{FILE, NODE, NODE_NAME, PIPELINE_NAME, RUN};

/// What a reference to a variable looks like, in place of any value.
const REFERENCE: &str = r"\$\{[^}]*\}";

/// The schema of pipeline files with these kinds, by draft 2020-12: keys and options with their descriptions, the
/// options of each node by its kind, and `${…}` wherever a value may stand.
pub fn json_schema(kinds: &dyn KindSchemas) -> Json {
    let mut names = kinds.names();
    names.sort_unstable();
    let mut definitions = Map::new();
    let mut choices = Vec::new();
    for name in &names {
        let Some(schema) = kinds.schema(name) else {
            continue;
        };
        let options = definition(schema, name, &mut definitions);
        let required = options["required"].as_array().is_some_and(|required| !required.is_empty());
        definitions.insert((*name).to_owned(), options);
        let options = json!({"$ref": format!("#/$defs/{name}")});
        let mut then = if required {
            json!({"properties": {"with": {"anyOf": [options, reference()]}}, "required": ["with"]})
        } else {
            json!({"properties": {"with": {"anyOf": [options, {"type": "null"}, reference()]}}})
        };
        if let Some(description) = schema.get("description") {
            then["properties"]["with"]["description"] = description.clone();
        }
        choices.push(json!({"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": then}));
    }
    let run = definition(&RUN, "run", &mut definitions);
    definitions.insert("run".into(), run);
    definitions.insert("node".into(), node(&names, choices));

    let mut file = FILE.clone();
    file["properties"]["name"]["pattern"] = json!(format!("{PIPELINE_NAME}|{REFERENCE}"));
    file["properties"]["run"] = json!({"anyOf": [{"$ref": "#/$defs/run"}, {"type": "null"}, reference()]});
    file["properties"]["run"]["description"] = FILE["properties"]["run"]["description"].clone();
    file["properties"]["nodes"]["propertyNames"] = json!({"pattern": NODE_NAME});
    file["properties"]["nodes"]["additionalProperties"] = json!({"$ref": "#/$defs/node"});
    file["patternProperties"] = json!({"^x-": true});
    file["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    file["title"] = json!("flowgpu pipeline");
    file["$defs"] = Json::Object(definitions);
    file
}

fn reference() -> Json {
    json!({"type": "string", "pattern": REFERENCE})
}

fn node(kinds: &[&str], choices: Vec<Json>) -> Json {
    let mut node = NODE.clone();
    let properties = node["properties"].as_object_mut().expect("the layout of a node lists its keys");
    for (name, property) in properties.iter_mut() {
        match name.as_str() {
            "kind" => property["anyOf"] = json!([{"enum": kinds}, {"pattern": REFERENCE}]),
            _ => *property = or_reference(property.take()),
        }
    }
    node["allOf"] = Json::Array(choices);
    node
}

/// A schema of its own as a definition of the whole: what it refers to moves along, under names that begin with its
/// own.
fn definition(schema: &Json, name: &str, definitions: &mut Map<String, Json>) -> Json {
    let mut schema = schema.clone();
    let inner = schema.as_object_mut().and_then(|object| {
        object.remove("$schema");
        object.remove("title");
        object.remove("$defs")
    });
    if let Some(Json::Object(inner)) = inner {
        for (inner_name, mut inner_schema) in inner {
            adapt(&mut inner_schema, name);
            definitions.insert(format!("{name}-{inner_name}"), inner_schema);
        }
    }
    adapt(&mut schema, name);
    // Only keys that are listed may be written; editors must say so even where serde would let them pass.
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        let combined = ["anyOf", "oneOf", "allOf"].iter().any(|key| schema.get(key).is_some());
        let key = if combined { "unevaluatedProperties" } else { "additionalProperties" };
        schema[key] = json!(false);
    }
    schema
}

/// References to where the definitions are now, and `${…}` in place of values.
fn adapt(schema: &mut Json, name: &str) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    // A reference fits several alternatives at once.
    if let Some(alternatives) = object.remove("oneOf") {
        object.insert("anyOf".into(), alternatives);
    }
    if let Some(Json::String(target)) = object.get_mut("$ref") {
        *target = match target.strip_prefix("#/$defs/") {
            Some(inner) => format!("#/$defs/{name}-{inner}"),
            None => format!("#/$defs/{name}"),
        };
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for part in object.get_mut(key).and_then(Json::as_array_mut).into_iter().flatten() {
            adapt(part, name);
            if key == "prefixItems" {
                *part = or_reference(part.take());
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = object.get_mut(key).filter(|part| part.is_object()) {
            adapt(part, name);
            *part = or_reference(part.take());
        }
    }
    for (_, property) in object.get_mut("properties").and_then(Json::as_object_mut).into_iter().flatten() {
        adapt(property, name);
        // A value that tells alternatives apart must stay what it is.
        if property.get("const").is_none() {
            *property = or_reference(property.take());
        }
    }
}

/// A schema that also accepts a text with a reference. The texts for people stay outside, where editors look.
fn or_reference(mut schema: Json) -> Json {
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    let plain_text = object.get("type") == Some(&json!("string"))
        && !["pattern", "enum", "format", "minLength", "maxLength"].iter().any(|key| object.contains_key(*key));
    if plain_text {
        return schema;
    }
    let mut outer = Map::new();
    for key in ["description", "default", "examples", "deprecated"] {
        if let Some(value) = object.remove(key) {
            outer.insert(key.into(), value);
        }
    }
    outer.insert("anyOf".into(), json!([schema, reference()]));
    Json::Object(outer)
}
