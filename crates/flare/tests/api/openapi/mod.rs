//! The description of the API at `/openapi.json`: it is whole, its examples are answered as it says, and what is made up
//! from it, by schemathesis and by generators of clients, finds nothing.

mod clients;
mod examples;
mod schemathesis;
mod whole;
mod world;

use serde_json::Value;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// One operation of the description.
#[derive(Clone)]
struct Operation {
    method: String,
    path: String,
    says: Value,
}

impl Operation {
    fn id(&self) -> &str {
        self.says["operationId"].as_str().expect("an operation has an id")
    }

    /// The status of its success, and what is said of it: the first one, where a parameter can ask for something else.
    fn success(&self) -> (u16, &Value) {
        let responses = self.says["responses"].as_object().expect("an operation has answers");
        let good = responses.iter().filter(|(status, _)| status.starts_with('2'));
        let (status, response) = good.min_by_key(|(status, _)| *status).expect("an operation can succeed");
        (status.parse().expect("a status"), response)
    }

    /// Its parameters, references followed.
    fn parameters<'a>(&'a self, description: &'a Value) -> Vec<&'a Value> {
        let all = self.says["parameters"].as_array().expect("an operation lists its parameters");
        all.iter().map(|parameter| follow(description, parameter)).collect()
    }
}

/// All operations of a description.
fn operations(description: &Value) -> Vec<Operation> {
    let paths = description["paths"].as_object().expect("there are paths");
    let of = |(path, item): (&String, &Value)| {
        let path = path.clone();
        let item = item.clone();
        METHODS.iter().filter_map(move |method| {
            let says = item.get(*method)?.clone();
            Some(Operation { method: method.to_uppercase(), path: path.clone(), says })
        })
    };
    paths.iter().flat_map(of).collect()
}

/// What a reference points to.
fn follow<'a>(description: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(place) => description.pointer(&place[1..]).unwrap_or_else(|| panic!("{place} is not there")),
        None => part,
    }
}
