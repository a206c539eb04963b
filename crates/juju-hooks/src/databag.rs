//! Relation data on its way to a hook tool.

use std::collections::BTreeMap;

use serde_json::Value;

/// One side's data in a relation: key to value, both any UTF-8. An empty value means "absent".
pub type Databag = BTreeMap<String, String>;

/// A JSON object of texts: never mistaken for a number, a boolean or null by the YAML reader on
/// the other side.
pub(crate) fn json_texts(data: &BTreeMap<String, String>) -> String {
    let texts = data
        .iter()
        .map(|(k, v)| (k.clone(), Value::String(v.clone())))
        .collect();
    Value::Object(texts).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_back(data: &Databag) -> Databag {
        yaml::parse_as(&json_texts(data)).unwrap()
    }

    #[test]
    fn texts_that_look_like_something_else_stay_texts() {
        let values = [
            "true",
            "yes",
            "1e3",
            "~",
            "null",
            "1.0",
            "0755",
            "2026-01-02",
            "a: b",
            "# x",
            " padded ",
            "two\nlines\n",
            "\t",
            "🦀",
            "\u{2028}",
            "<&>",
            "\"'\\",
            "[]",
            "{}",
            "",
            "%",
        ];
        let data = values
            .iter()
            .map(|v| (format!("k-{v}"), (*v).to_owned()))
            .collect();
        assert_eq!(read_back(&data), data);
    }

    proptest! {
        #[test]
        fn any_text_is_read_back_from_json_as_it_was(data: BTreeMap<String, String>) {
            let json: Databag = serde_json::from_str(&json_texts(&data)).unwrap();
            prop_assert_eq!(json, data);
        }

        #[test]
        fn printable_text_is_read_back_from_yaml_as_it_was(
            data in prop::collection::btree_map("[ -~é🦀]{1,20}", "[ -~é\u{2028}🦀\n\t]{0,40}", 0..6),
        ) {
            prop_assert_eq!(read_back(&data), data);
        }
    }
}
