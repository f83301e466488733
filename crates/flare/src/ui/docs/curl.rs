//! The example of an operation comes in; a command that sends it goes out.

use std::fmt::Write as _;

use serde_json::Value;

/// The command. `$FLARE` is where the node is.
pub fn command(method: &str, path: &str, parameters: &[&Value], body: &Value) -> String {
    let (mut path, mut query, mut options) = (path.to_owned(), Vec::new(), String::new());
    for parameter in parameters {
        let (name, example) = (parameter["name"].as_str().unwrap_or_default(), plain(&parameter["example"]));
        match parameter["in"].as_str() {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &example),
            Some("query") => query.push(format!("{name}={example}")),
            _ => {
                let _ = write!(options, " \\\n  -H {}", quoted(&format!("{name}: {example}")));
            }
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let content = body["content"].as_object().and_then(|content| content.iter().next());
    let streams = method == "get" && (path.contains("/stream") || path.contains("/tail"));
    let method = match (method, &content) {
        ("get", _) | ("post", Some(_)) => String::new(),
        (other, _) => format!(" -X {}", other.to_uppercase()),
    };
    if let Some((media, content)) = content {
        let _ = write!(options, " \\\n  --data-binary {}", quoted(&shown(media, &content["example"])));
    }
    format!("curl -s{}{method} \"$FLARE{path}\"{options}", if streams { "N" } else { "" })
}

/// An example as it goes over the wire, laid out for people.
pub fn shown(media: &str, example: &Value) -> String {
    match (media, example) {
        ("application/json", value) => serde_json::to_string_pretty(value).unwrap_or_default(),
        ("text/event-stream", Value::Array(events)) => events
            .iter()
            .map(|event| format!("id: {}\ndata: {}\n\n", plain(&event["id"]), plain(&event["data"])))
            .collect(),
        (_, Value::Array(lines)) => lines.iter().map(|line| line.to_string() + "\n").collect(),
        (_, value) => plain(value),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// For a shell: within single quotes only the quote itself means something.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let id = json!({"name": "id", "in": "path", "example": "sub_1"});
        let query = json!({"name": "wait", "in": "query", "example": "20s"});
        let header = json!({"name": "Flare-Revision", "in": "header", "example": "2"});
        let body = json!({"content": {"application/json": {"example": {"when": "a != 'b'"}}}});
        let command = command("patch", "/s/{id}", &[&id, &query, &header], &body);
        let expected = "curl -s -X PATCH \"$FLARE/s/sub_1?wait=20s\" \\\n  -H 'Flare-Revision: 2' \\\n  --data-binary '{\n  \
                        \"when\": \"a != '\\''b'\\''\"\n}'";
        assert_eq!(command, expected);
    }
}
